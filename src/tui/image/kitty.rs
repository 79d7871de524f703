//! kitty's graphics protocol: a picture is sent once and has a number; cells that name it are text like any other.

/// What the protocol takes in one piece.
const CHUNK: usize = 4096;

/// What ends a picture of which not all was sent.
pub const BREAK_OFF: &[u8] = b"\x1b_Gq=2,m=0;\x1b\\";

/// The sequences that send a picture with the size of its place, in order. No answer is wanted.
pub fn transmit(id: u32, data: &str, columns: usize, rows: usize) -> Vec<Vec<u8>> {
    let mut pieces = Vec::with_capacity(data.len() / CHUNK + 1);
    let mut rest = data;
    let mut is_first = true;
    while is_first || !rest.is_empty() {
        let (part, more) = rest.split_at_checked(CHUNK.min(rest.len())).unwrap_or((rest, ""));
        let goes_on = u8::from(!more.is_empty());
        let keys = if is_first {
            format!("a=T,U=1,p=1,f=100,t=d,q=2,i={id},c={columns},r={rows},m={goes_on}")
        } else {
            format!("q=2,m={goes_on}")
        };
        pieces.push(format!("\x1b_G{keys};{part}\x1b\\").into_bytes());
        (rest, is_first) = (more, false);
    }
    if pieces.len() > 1 {
        // Cells that were painted before its end came are looked at again.
        pieces.push(place(id, columns, rows));
    }
    pieces
}

/// Gives a picture that was sent another place.
pub fn place(id: u32, columns: usize, rows: usize) -> Vec<u8> {
    format!("\x1b_Ga=p,U=1,p=1,q=2,i={id},c={columns},r={rows}\x1b\\").into_bytes()
}

/// Has the terminal drop a picture.
pub fn forget(id: u32) -> Vec<u8> {
    format!("\x1b_Ga=d,d=I,q=2,i={id}\x1b\\").into_bytes()
}

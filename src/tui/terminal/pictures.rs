//! The sequences of pictures.
//!
//! kitty's graphics protocol sends a picture once, with a number; cells that name it are text like any other. iTerm2's and
//! sixel paint where the cursor is. Konsole's way to remove a picture is kitty's.

/// Bytes that kitty's protocol takes in one piece.
const CHUNK: usize = 4096;

/// Ends a picture of which not all was sent.
pub const BREAK_OFF: &[u8] = b"\x1b_Gq=2,m=0;\x1b\\";

/// Removes the picture under the cursor.
pub const ERASE: &[u8] = b"\x1b_Ga=d,d=c,q=2\x1b\\";

/// Asks for the width and height of a cell in pixels.
pub const ASK_CELL_SIZE: &[u8] = b"\x1b[16t";

/// Returns the sequences that send a picture with the size of its place, in order. No answer is wanted.
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

/// Returns the sequence that gives a picture another place.
pub fn place(id: u32, columns: usize, rows: usize) -> Vec<u8> {
    format!("\x1b_Ga=p,U=1,p=1,q=2,i={id},c={columns},r={rows}\x1b\\").into_bytes()
}

/// Returns the sequence that has the terminal drop a picture.
pub fn forget(id: u32) -> Vec<u8> {
    format!("\x1b_Ga=d,d=I,q=2,i={id}\x1b\\").into_bytes()
}

/// Returns the sequence that paints a row of cells in iTerm2's protocol: a PNG of `size` bytes, given in base64.
pub fn iterm2(png: &str, size: usize, columns: usize) -> Vec<u8> {
    format!(
        "\x1b]1337;File=inline=1;size={size};width={columns};height=1;preserveAspectRatio=0;doNotMoveCursor=1:{png}\x07"
    )
    .into_bytes()
}

/// Returns the sequence that paints sixels on so many pixels; what is seen through stays as it is.
pub fn sixel(wide: usize, high: usize, sixels: &str) -> String {
    format!("\x1bP0;1;0q\"1;1;{wide};{high}{sixels}\x1b\\")
}

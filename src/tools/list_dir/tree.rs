//! A listing of a folder as a tree.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

/// A folder in a listing.
#[derive(Default)]
pub struct Folder {
    folders: BTreeMap<String, Folder>,
    files: Vec<String>,
}

/// Below this a listing is not unfolded: nobody's folders are so deep.
const DEEPEST: usize = 64;

impl Folder {
    /// The tree of the entries of a result.
    pub fn of(entries: &[Value]) -> Self {
        let mut root = Self::default();
        for entry in entries.iter().filter_map(Value::as_str) {
            let mut folder = &mut root;
            let mut parts = entry.trim_start_matches("./").split('/').peekable();
            let mut depth = 0;
            while let Some(part) = parts.next() {
                depth += 1;
                if parts.peek().is_none() {
                    // Of a line such as `[12 files: …]` there is no name.
                    if !part.is_empty() && !part.starts_with('[') {
                        folder.files.push(part.to_owned());
                    }
                } else if depth > DEEPEST {
                    break;
                } else {
                    folder = folder.folders.entry(part.to_owned()).or_default();
                }
            }
        }
        root
    }

    fn count(&self, extensions: &mut BTreeMap<String, u64>) {
        for file in &self.files {
            if let Some(extension) = Path::new(file).extension() {
                let extension = format!(".{}", extension.to_string_lossy());
                *extensions.entry(extension).or_default() += 1;
            }
        }
        for folder in self.folders.values() {
            folder.count(extensions);
        }
    }

    /// The tree in Cursor's shape; `is_whole`: nothing was left out.
    pub fn to_json(&self, path: &Path, is_whole: bool) -> Value {
        let folders: Vec<Value> = self
            .folders
            .iter()
            .map(|(name, folder)| folder.to_json(&path.join(name), is_whole))
            .collect();
        let files: Vec<Value> = self.files.iter().map(|name| json!({ "name": name })).collect();
        let mut extensions = BTreeMap::new();
        self.count(&mut extensions);
        json!({
            "absPath": path,
            "childrenDirs": folders,
            "childrenFiles": files,
            "childrenWereProcessed": is_whole,
            "fullSubtreeExtensionCounts": extensions,
            "numFiles": self.files.len(),
        })
    }
}

//! Packs of an encoder's weights (`HMSEMB01`), and their conversion to ONNX.
//!
//! A pack is: the magic, the length of the header (u64, little-endian), the header in JSON (architecture, list of tensors,
//! `tokenizer_len`), tokenizer.json, the tensors in the order of the list. A tensor of bytes is its rows, then a scale (f32) for
//! each group of values.

use serde::Deserialize;

use super::onnx::{Attribute, Graph, Kind};

const MAGIC: &[u8] = b"HMSEMB01";
/// Maximum length of the header, in bytes.
const LONGEST_HEADER: usize = 1 << 20;
/// What a masked token's score is lowered by.
const MASKED: f32 = -1e9;

/// An encoder, converted.
#[derive(Debug)]
pub struct Converted {
    /// The model: `input_ids`, `attention_mask` and `position_ids` to `sentence_embedding`.
    pub onnx: Vec<u8>,
    /// The content of `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// The position of the first token.
    pub first_position: usize,
}

#[derive(Debug, Deserialize)]
struct Header {
    arch: Architecture,
    tensors: Vec<TensorHead>,
    tokenizer_len: usize,
    meta: Meta,
}

#[derive(Debug, Deserialize)]
struct Meta {
    pooling: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Architecture {
    hidden: usize,
    layers: usize,
    heads: usize,
    layer_norm_eps: f32,
    position_offset: usize,
}

#[derive(Debug, Deserialize)]
struct TensorHead {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    len: usize,
    group: usize,
}

/// A tensor of the pack.
struct Tensor<'a> {
    head: &'a TensorHead,
    bytes: &'a [u8],
}

/// Returns true if the file is a pack.
pub fn is_pack(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Converts a pack. The error is a sentence for people.
pub fn convert(bytes: &[u8]) -> Result<Converted, String> {
    let damaged = |what: &str| format!("the pack is damaged: {what}");
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| damaged("its first bytes are wrong"))?;
    let (length, rest) = rest.split_at_checked(8).ok_or_else(|| damaged("it ends too early"))?;
    let length = u64::from_le_bytes(length.try_into().map_err(|_| damaged("it ends too early"))?) as usize;
    if length > LONGEST_HEADER {
        return Err(damaged("its header is too long"));
    }
    let (header, rest) = rest
        .split_at_checked(length)
        .ok_or_else(|| damaged("it ends too early"))?;
    let header: Header = serde_json::from_slice(header).map_err(|it| damaged(&it.to_string()))?;
    if header.meta.pooling != "cls" {
        return Err(format!("packs with {} pooling are not supported", header.meta.pooling));
    }
    let (tokenizer, mut rest) = rest
        .split_at_checked(header.tokenizer_len)
        .ok_or_else(|| damaged("it ends too early"))?;
    let mut tensors = Vec::new();
    for head in &header.tensors {
        let (bytes, after) = rest
            .split_at_checked(head.len)
            .ok_or_else(|| damaged("it ends too early"))?;
        let values = head.shape.iter().try_fold(1_usize, |all, it| all.checked_mul(*it));
        let expected = match (head.dtype.as_str(), values) {
            ("f32", Some(values)) => values.checked_mul(4),
            ("i8", Some(values)) if head.group > 0 && head.shape.last().is_some_and(|it| it % head.group == 0) => {
                values.checked_add(values / head.group * 4)
            }
            _ => None,
        };
        if expected != Some(head.len) {
            return Err(damaged(&format!("the tensor {} has a wrong length", head.name)));
        }
        tensors.push(Tensor { head, bytes });
        rest = after;
    }
    Ok(Converted {
        onnx: Encoder {
            architecture: header.arch,
            tensors: &tensors,
            graph: Graph::default(),
        }
        .write()
        .map_err(|name| damaged(&format!("the tensor {name} is missing")))?,
        tokenizer: tokenizer.to_vec(),
        first_position: header.arch.position_offset,
    })
}

/// Writes the graph of an encoder. Errors are names of missing tensors.
struct Encoder<'a> {
    architecture: Architecture,
    tensors: &'a [Tensor<'a>],
    graph: Graph,
}

impl Encoder<'_> {
    fn tensor(&self, name: &str) -> Result<&Tensor<'_>, String> {
        let found = self.tensors.iter().find(|it| it.head.name == name);
        found.ok_or_else(|| name.to_owned())
    }

    /// Adds an exact tensor as a constant.
    fn exact(&mut self, name: &str) -> Result<String, String> {
        let tensor = self.tensor(name)?;
        let (shape, bytes) = (tensor.head.shape.clone(), tensor.bytes.to_vec());
        if tensor.head.dtype != "f32" {
            return Err(name.to_owned());
        }
        Ok(self.graph.constant(Kind::F32, &shape, &bytes))
    }

    /// Adds a tensor of bytes as two constants: rows × groups × values, and rows × groups × 1. Also returns the row's length.
    fn grouped(&mut self, name: &str) -> Result<(String, String), String> {
        let tensor = self.tensor(name)?;
        let (&[rows, columns], group) = (tensor.head.shape.as_slice(), tensor.head.group) else {
            return Err(name.to_owned());
        };
        if tensor.head.dtype != "i8" {
            return Err(name.to_owned());
        }
        let groups = columns / group;
        let (values, scales) = tensor.bytes.split_at(rows * columns);
        let (values, scales) = (values.to_vec(), scales.to_vec());
        let values = self.graph.constant(Kind::I8, &[rows, groups, group], &values);
        let scales = self.graph.constant(Kind::F32, &[rows, groups, 1], &scales);
        Ok((values, scales))
    }

    /// Turns bytes and scales into exact rows.
    fn scaled(&mut self, (values, scales): (&str, &str), shape: &[i64]) -> String {
        let exact = self
            .graph
            .node("Cast", &[values], &[Attribute::Int("to", Kind::F32 as i64)]);
        let scaled = self.graph.node("Mul", &[&exact, scales], &[]);
        let shape = self.graph.integers(shape);
        self.graph.node("Reshape", &[&scaled, &shape], &[])
    }

    /// `input` × the weights `name`.w + `name`.b. The weights stand as output × input.
    fn linear(&mut self, input: &str, name: &str) -> Result<String, String> {
        let weights = format!("{name}.w");
        let shape: Vec<i64> = self.tensor(&weights)?.head.shape.iter().map(|it| *it as i64).collect();
        let (values, scales) = self.grouped(&weights)?;
        let exact = self.scaled((&values, &scales), &shape);
        let turned = self
            .graph
            .node("Transpose", &[&exact], &[Attribute::Ints("perm", &[1, 0])]);
        let product = self.graph.node("MatMul", &[input, &turned], &[]);
        let bias = self.exact(&format!("{name}.b"))?;
        Ok(self.graph.node("Add", &[&product, &bias], &[]))
    }

    fn normalized(&mut self, input: &str, name: &str) -> Result<String, String> {
        let scale = self.exact(&format!("{name}.w"))?;
        let bias = self.exact(&format!("{name}.b"))?;
        let attributes = [
            Attribute::Int("axis", -1),
            Attribute::Float("epsilon", self.architecture.layer_norm_eps),
        ];
        Ok(self
            .graph
            .node("LayerNormalization", &[input, &scale, &bias], &attributes))
    }

    fn write(mut self) -> Result<Vec<u8>, String> {
        let Architecture {
            hidden, heads, layers, ..
        } = self.architecture;
        self.graph.input("input_ids", Kind::I64, &["batch", "tokens"]);
        self.graph.input("attention_mask", Kind::I64, &["batch", "tokens"]);
        self.graph.input("position_ids", Kind::I64, &["batch", "tokens"]);

        let (values, scales) = self.grouped("word_emb")?;
        let rows = Attribute::Int("axis", 0);
        let values = self.graph.node("Gather", &[&values, "input_ids"], &[rows]);
        let scales = self.graph.node("Gather", &[&scales, "input_ids"], &[rows]);
        let words = self.scaled((&values, &scales), &[0, 0, hidden as i64]);
        let positions = self.exact("pos_emb")?;
        let positions = self.graph.node("Gather", &[&positions, "position_ids"], &[rows]);
        let kinds = self.exact("type_emb")?;
        let first = self.graph.integers(&[0]);
        let kind = self.graph.node("Gather", &[&kinds, &first], &[rows]);
        let sum = self.graph.node("Add", &[&words, &positions], &[]);
        let sum = self.graph.node("Add", &[&sum, &kind], &[]);
        let mut state = self.normalized(&sum, "emb_ln")?;

        // 0 for a token, a large negative number for what is not there: batch × 1 × 1 × tokens.
        let mask = self
            .graph
            .node("Cast", &["attention_mask"], &[Attribute::Int("to", Kind::F32 as i64)]);
        let one = self.graph.number(1.0);
        let absent = self.graph.node("Sub", &[&one, &mask], &[]);
        let lowered = self.graph.number(MASKED);
        let bias = self.graph.node("Mul", &[&absent, &lowered], &[]);
        let axes = self.graph.integers(&[1, 2]);
        let bias = self.graph.node("Unsqueeze", &[&bias, &axes], &[]);

        let size = hidden / heads.max(1);
        let scale = self.graph.number(1.0 / (size as f32).sqrt());
        for layer in 0..layers {
            let name = |part: &str| format!("l{layer}.{part}");
            let all = self.linear(&state, &name("qkv"))?;
            let parts = self.graph.integers(&[hidden as i64; 3]);
            let parts: [String; 3] = self
                .graph
                .nodes("Split", &[&all, &parts], &[Attribute::Int("axis", -1)]);
            let mut turned = |part: &str, order: &[i64]| {
                let shape = self.graph.integers(&[0, 0, heads as i64, size as i64]);
                let split = self.graph.node("Reshape", &[part, &shape], &[]);
                self.graph
                    .node("Transpose", &[&split], &[Attribute::Ints("perm", order)])
            };
            let query = turned(&parts[0], &[0, 2, 1, 3]);
            let key = turned(&parts[1], &[0, 2, 3, 1]);
            let value = turned(&parts[2], &[0, 2, 1, 3]);
            let scores = self.graph.node("MatMul", &[&query, &key], &[]);
            let scores = self.graph.node("Mul", &[&scores, &scale], &[]);
            let scores = self.graph.node("Add", &[&scores, &bias], &[]);
            let shares = self.graph.node("Softmax", &[&scores], &[Attribute::Int("axis", -1)]);
            let seen = self.graph.node("MatMul", &[&shares, &value], &[]);
            let seen = self
                .graph
                .node("Transpose", &[&seen], &[Attribute::Ints("perm", &[0, 2, 1, 3])]);
            let shape = self.graph.integers(&[0, 0, hidden as i64]);
            let seen = self.graph.node("Reshape", &[&seen, &shape], &[]);
            let seen = self.linear(&seen, &name("ao"))?;
            let sum = self.graph.node("Add", &[&seen, &state], &[]);
            let between = self.normalized(&sum, &name("aln"))?;
            let wide = self.linear(&between, &name("f1"))?;
            let wide = self.gelu(&wide);
            let narrow = self.linear(&wide, &name("f2"))?;
            let sum = self.graph.node("Add", &[&narrow, &between], &[]);
            state = self.normalized(&sum, &name("fln"))?;
        }
        let first = self.graph.constant(Kind::I64, &[], &0_i64.to_le_bytes());
        let start = self
            .graph
            .node("Gather", &[&state, &first], &[Attribute::Int("axis", 1)]);
        let length = self.graph.integers(&[-1, hidden as i64]);
        let name = self.graph.node("Reshape", &[&start, &length], &[]);
        self.graph.output(&name, Kind::F32, &["batch", "values"]);
        Ok(self.graph.file("encoder"))
    }

    /// x · Φ(x), by the error function.
    fn gelu(&mut self, input: &str) -> String {
        let root = self.graph.number(std::f32::consts::SQRT_2);
        let one = self.graph.number(1.0);
        let half = self.graph.number(0.5);
        let part = self.graph.node("Div", &[input, &root], &[]);
        let error = self.graph.node("Erf", &[&part], &[]);
        let sum = self.graph.node("Add", &[&error, &one], &[]);
        let product = self.graph.node("Mul", &[input, &sum], &[]);
        self.graph.node("Mul", &[&product, &half], &[])
    }
}

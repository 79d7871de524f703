//! Models that run on this machine: an ONNX encoder (`model.onnx`) or a table of word vectors (`model.safetensors`, as model2vec
//! writes it), each with its `tokenizer.json`.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rten::{Model, ModelOptions, NodeId, OpRegistry, RunOptions, ThreadPool, ValueOrView, op_registry};
use rten_tensor::{NdTensor, prelude::*};
use serde::{Deserialize, Serialize};
use tokenizers::{Tokenizer, TruncationParams};

use super::{Effort, EmbedError, Embedder};
use crate::{
    index::IsOver,
    os::{file, memory_trim::trim_when_worth},
};

/// The description of an installed model, in its folder.
pub const DESCRIPTION: &str = "model.json";
/// File of an ONNX encoder.
pub const ONNX: &str = "model.onnx";
/// File of a table of word vectors.
pub const TABLE: &str = "model.safetensors";
/// File of the tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// Maximum size of a file of a model, in bytes.
pub const LONGEST_FILE: u64 = 2 << 30;
/// Tokens that are read together: more is not faster and takes memory.
const TOKENS_TOGETHER: usize = 512;
/// Bytes of text for each token that may be read. Code has about three.
const BYTES_PER_TOKEN: usize = 8;

/// Rule that makes a text's vector of those of its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// That of the first token.
    Cls,
    /// Their mean.
    Mean,
}

/// The description of an installed model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Name and content: `granite-30m@4f2a…`.
    pub id: String,
    pub dims: usize,
    pub pooling: Pooling,
    /// Tokens of a text that are read.
    pub tokens: usize,
    /// The position of the first token.
    #[serde(default)]
    pub first_position: usize,
    /// Text before each question.
    #[serde(default)]
    pub query_prefix: String,
    /// Text before each document.
    #[serde(default)]
    pub document_prefix: String,
}

/// A model in a folder. It is loaded when it is used, and again after it has rested.
pub struct LocalModel {
    folder: PathBuf,
    description: Description,
    /// The model, or why it cannot be used.
    engine: Mutex<Option<Result<Arc<Engine>, String>>>,
    /// One thread, which has the priority of the one that first asked for it.
    aside: OnceLock<Arc<ThreadPool>>,
}

struct Engine {
    tokenizer: Tokenizer,
    weights: Weights,
}

enum Weights {
    Encoder {
        model: Box<Model>,
        inputs: Vec<(NodeId, EncoderInput)>,
        output: NodeId,
    },
    Table(Table),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncoderInput {
    Tokens,
    Mask,
    /// The part of a text: all nought.
    Kinds,
    Positions,
}

/// Word vectors, a row for each token.
struct Table {
    values: Vec<f32>,
    dims: usize,
}

impl LocalModel {
    /// Reads the description of the model in `folder`.
    pub fn open(folder: &Path) -> Result<Self, EmbedError> {
        let path = folder.join(DESCRIPTION);
        let unusable = |why: String| EmbedError::Unusable(format!("{}: {why}", path.display()));
        let bytes = file::read(&path, 1 << 20).map_err(|it| unusable(it.to_string()))?;
        let description = serde_json::from_slice(&bytes).map_err(|it| unusable(it.to_string()))?;
        Ok(Self {
            folder: folder.to_owned(),
            description,
            engine: Mutex::default(),
            aside: OnceLock::new(),
        })
    }

    /// A model in a folder without a description.
    pub fn described(folder: &Path, description: Description) -> Self {
        Self {
            folder: folder.to_owned(),
            description,
            engine: Mutex::default(),
            aside: OnceLock::new(),
        }
    }

    /// Makes a vector of a short text. Returns its dimensions; more than `most` are an error, and none.
    pub fn try_out(&self, most: usize) -> Result<usize, EmbedError> {
        let made = self.embed("", &["fn main() {}".to_owned()], Effort::Search)?;
        let dims = made.first().map_or(0, Vec::len);
        if dims == 0 || dims > most {
            return Err(EmbedError::Unusable(format!(
                "the model makes vectors with {dims} values"
            )));
        }
        Ok(dims)
    }

    fn engine(&self) -> Result<Arc<Engine>, EmbedError> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = engine.get_or_insert_with(|| load(&self.folder, &self.description).map(Arc::new));
        engine.clone().map_err(EmbedError::Unusable)
    }

    fn embed(&self, prefix: &str, texts: &[String], effort: Effort) -> Result<Vec<Vec<f32>>, EmbedError> {
        let engine = self.engine()?;
        let most = self.description.tokens * BYTES_PER_TOKEN;
        let mut tokens = Vec::with_capacity(texts.len());
        for text in texts {
            let text = format!(
                "{prefix}{}",
                text.get(..text.floor_char_boundary(most)).unwrap_or_default()
            );
            let encoding = engine.tokenizer.encode_fast(text, true);
            let encoding = encoding.map_err(|it| EmbedError::Unusable(format!("a text cannot be read: {it}")))?;
            tokens.push(encoding.get_ids().to_vec());
        }
        match &engine.weights {
            Weights::Table(table) => Ok(tokens.iter().map(|it| table.mean(it)).collect()),
            Weights::Encoder { model, inputs, output } => {
                // Texts of similar length are read together: what fills up the shorter ones is read, too.
                let mut order: Vec<usize> = (0..tokens.len()).collect();
                order.sort_by_key(|it| tokens[*it].len());
                let mut vectors = vec![Vec::new(); tokens.len()];
                let mut rest = order.as_slice();
                while let Some(first) = rest.first() {
                    let longest = |count: usize| rest.get(count - 1).map_or(0, |it| tokens[*it].len());
                    let mut count = 1;
                    while count < rest.len() && (count + 1) * longest(count + 1) <= TOKENS_TOGETHER {
                        count += 1;
                    }
                    debug_assert!(tokens[*first].len() <= longest(count));
                    let (batch, after) = rest.split_at(count);
                    let texts: Vec<&[u32]> = batch.iter().map(|it| tokens[*it].as_slice()).collect();
                    let made = self.run(model, (inputs, *output), &texts, effort)?;
                    for (at, vector) in batch.iter().zip(made) {
                        vectors[*at] = vector;
                    }
                    rest = after;
                }
                Ok(vectors)
            }
        }
    }

    fn run(
        &self,
        model: &Model,
        (inputs, output): (&[(NodeId, EncoderInput)], NodeId),
        texts: &[&[u32]],
        effort: Effort,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let failed = |it: &dyn std::fmt::Display| EmbedError::Unusable(format!("the model cannot be run: {it}"));
        let width = texts.iter().map(|it| it.len()).max().unwrap_or_default().max(1);
        let filled = |value: &dyn Fn(usize, Option<u32>) -> i32| {
            let values = texts
                .iter()
                .flat_map(|text| (0..width).map(move |at| (at, text.get(at).copied())));
            let values: Vec<i32> = values.map(|(at, token)| value(at, token)).collect();
            NdTensor::from_data([texts.len(), width], values)
        };
        let first = self.description.first_position as i32;
        let given = inputs.iter().map(|(node, input)| {
            let tensor = match input {
                EncoderInput::Tokens => filled(&|_, token| token.unwrap_or_default() as i32),
                EncoderInput::Mask => filled(&|_, token| i32::from(token.is_some())),
                EncoderInput::Kinds => filled(&|_, _| 0),
                EncoderInput::Positions => filled(&|at, _| first + at as i32),
            };
            (*node, ValueOrView::from(tensor))
        });
        let mut options = RunOptions::default();
        if effort == Effort::Aside {
            let pool = self.aside.get_or_init(|| Arc::new(ThreadPool::with_num_threads(1)));
            options.thread_pool = Some(Arc::clone(pool));
        }
        let [made] = model
            .run_n(given.collect(), [output], Some(options))
            .map_err(|it| failed(&it))?;
        let made: rten_tensor::Tensor<f32> = made.try_into().map_err(|_| failed(&"its output is not f32"))?;
        match *made.shape() {
            [count, size] if count == texts.len() && size > 0 => {
                Ok(made.to_vec().chunks(size).map(<[f32]>::to_vec).collect())
            }
            [count, tokens, size] if count == texts.len() && tokens * size > 0 => {
                let values = made.to_vec();
                let texts = texts.iter().zip(values.chunks(tokens * size));
                let vectors = texts.map(|(text, rows)| match self.description.pooling {
                    Pooling::Cls => rows.get(..size).unwrap_or_default().to_vec(),
                    Pooling::Mean => mean(rows.chunks(size).take(text.len()), size),
                });
                Ok(vectors.collect())
            }
            ref shape => Err(failed(&format!("its output has the shape {shape:?}"))),
        }
    }
}

/// The mean of rows with `size` values each.
fn mean<'a>(rows: impl Iterator<Item = &'a [f32]>, size: usize) -> Vec<f32> {
    let mut sum = vec![0.0; size];
    let mut count = 0.0_f32;
    for row in rows {
        count += 1.0;
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += value;
        }
    }
    for sum in &mut sum {
        *sum /= count.max(1.0);
    }
    sum
}

impl Table {
    fn mean(&self, tokens: &[u32]) -> Vec<f32> {
        let rows = tokens.iter().filter_map(|it| {
            let start = *it as usize * self.dims;
            self.values.get(start..start + self.dims)
        });
        mean(rows, self.dims)
    }
}

impl Embedder for LocalModel {
    fn id(&self) -> &str {
        &self.description.id
    }

    fn dims(&self) -> usize {
        self.description.dims
    }

    fn is_local(&self) -> bool {
        true
    }

    fn batch(&self) -> usize {
        16
    }

    fn embed_documents(&self, texts: &[String], effort: Effort, _: IsOver<'_>) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embed(&self.description.document_prefix, texts, effort)
    }

    fn rest(&self) {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if engine.take_if(|it| it.is_ok()).is_some() {
            drop(engine);
            trim_when_worth();
        }
    }

    fn embed_query(&self, text: &str, _: IsOver<'_>) -> Result<Vec<f32>, EmbedError> {
        let made = self.embed(&self.description.query_prefix, &[text.to_owned()], Effort::Search)?;
        made.into_iter()
            .next()
            .ok_or_else(|| EmbedError::Unusable("the model made no vector".to_owned()))
    }
}

fn load(folder: &Path, description: &Description) -> Result<Engine, String> {
    let shown = folder.display();
    let read = |name: &str| file::read(&folder.join(name), LONGEST_FILE).map_err(|it| it.to_string());
    // While it was not in memory, another model may have been installed under its name.
    let now = file::read(&folder.join(DESCRIPTION), 1 << 20).ok();
    let now = now.and_then(|it| serde_json::from_slice::<Description>(&it).ok());
    if now.is_some_and(|it| it != *description) {
        return Err(format!("{shown} has another model now; start sheaf again"));
    }
    let mut tokenizer =
        Tokenizer::from_bytes(read(TOKENIZER)?).map_err(|it| format!("{shown}/{TOKENIZER} cannot be read: {it}"))?;
    tokenizer.with_padding(None);
    let truncation = TruncationParams {
        max_length: description.tokens,
        ..TruncationParams::default()
    };
    tokenizer
        .with_truncation(Some(truncation))
        .map_err(|it| format!("{shown}/{TOKENIZER} cannot be used: {it}"))?;
    let weights = if folder.join(ONNX).exists() {
        let model = ModelOptions::with_ops(operators()).load(read(ONNX)?);
        encoder(model.map_err(|it| format!("{shown}/{ONNX} cannot be loaded: {it}"))?)
            .map_err(|it| format!("{shown}/{ONNX} is no encoder: {it}"))?
    } else {
        Weights::Table(table(&read(TABLE)?).map_err(|it| format!("{shown}/{TABLE} cannot be used: {it}"))?)
    };
    Ok(Engine { tokenizer, weights })
}

/// The operators of encoders. Others are not built in: all of them would take three megabytes.
fn operators() -> OpRegistry {
    op_registry!(
        Add,
        And,
        Cast,
        Clip,
        Concat,
        ConstantOfShape,
        Cos,
        CumSum,
        DequantizeLinear,
        Div,
        DynamicQuantizeLinear,
        Equal,
        Erf,
        Exp,
        Expand,
        Gather,
        GatherElements,
        GatherND,
        Gelu,
        Gemm,
        Greater,
        GreaterOrEqual,
        Identity,
        LayerNormalization,
        Less,
        LessOrEqual,
        MatMul,
        MatMulInteger,
        Max,
        Min,
        Mul,
        Neg,
        Not,
        Or,
        Pow,
        Range,
        Reciprocal,
        ReduceL2,
        ReduceMax,
        ReduceMean,
        ReduceSum,
        Relu,
        Reshape,
        RotaryEmbedding,
        ScatterND,
        Shape,
        Sigmoid,
        Sin,
        Slice,
        Softmax,
        Split,
        Sqrt,
        Squeeze,
        Sub,
        Tanh,
        Tile,
        Transpose,
        Trilu,
        Unsqueeze,
        Where
    )
}

/// Finds the inputs and the output of an encoder by their usual names.
fn encoder(model: Model) -> Result<Weights, String> {
    let mut inputs = Vec::new();
    for node in model.input_ids() {
        let name = model
            .node_info(*node)
            .and_then(|it| it.name().map(str::to_owned))
            .unwrap_or_default();
        let input = match name.as_str() {
            "input_ids" => EncoderInput::Tokens,
            "attention_mask" => EncoderInput::Mask,
            "token_type_ids" => EncoderInput::Kinds,
            "position_ids" => EncoderInput::Positions,
            other => return Err(format!("it has an input `{other}`")),
        };
        inputs.push((*node, input));
    }
    if !inputs.iter().any(|it| it.1 == EncoderInput::Tokens) {
        return Err("it has no input `input_ids`".to_owned());
    }
    let named = ["sentence_embedding", "last_hidden_state", "token_embeddings"];
    let output = named.iter().find_map(|it| {
        let node = model.find_node(it)?;
        model.output_ids().contains(&node).then_some(node)
    });
    let output = output.or_else(|| model.output_ids().first().copied());
    let output = output.ok_or("it has no output")?;
    Ok(Weights::Encoder {
        model: Box::new(model),
        inputs,
        output,
    })
}

/// Reads the one table of a safetensors file: the length of its header (u64), the header in JSON, the values.
fn table(bytes: &[u8]) -> Result<Table, String> {
    #[derive(Deserialize)]
    struct Head {
        dtype: String,
        shape: Vec<usize>,
        data_offsets: (usize, usize),
    }
    let (length, rest) = bytes.split_at_checked(8).ok_or("it ends too early")?;
    let length = length.try_into().map_or(0, u64::from_le_bytes) as usize;
    let (header, values) = rest.split_at_checked(length).ok_or("it ends too early")?;
    let header: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|it| it.to_string())?;
    if header.contains_key("weights") || header.contains_key("mapping") {
        return Err("tables with weights or a mapping of tokens are not supported".to_owned());
    }
    let named = ["embeddings", "embedding.weight", "embeddings.weight"];
    let head = named
        .iter()
        .find_map(|it| header.get(*it))
        .ok_or("it has no tensor `embeddings`")?;
    let head: Head = serde_json::from_value(head.clone()).map_err(|it| it.to_string())?;
    let (start, end) = head.data_offsets;
    let raw = values.get(start..end).ok_or("it ends too early")?;
    let values: Vec<f32> = match head.dtype.as_str() {
        "F32" => raw.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect(),
        "F16" => raw
            .as_chunks()
            .0
            .iter()
            .map(|it| half(u16::from_le_bytes(*it)))
            .collect(),
        other => return Err(format!("its values are of the type {other}")),
    };
    match *head.shape {
        [rows, dims] if dims > 0 && rows.checked_mul(dims) == Some(values.len()) => Ok(Table { values, dims }),
        ref shape => Err(format!("its table has the shape {shape:?}")),
    }
}

/// The value of a number of 16 bits (IEEE 754).
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 0x1f, bits & 0x3ff);
    let size = match exponent {
        0 => f32::from(fraction) * 2.0_f32.powi(-24),
        0x1f => f32::NAN,
        _ => (1.0 + f32::from(fraction) / 1024.0) * 2.0_f32.powi(i32::from(exponent) - 15),
    };
    if sign == 1 { -size } else { size }
}

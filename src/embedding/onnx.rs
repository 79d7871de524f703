//! Writes ONNX models: the few parts of the format that an encoder needs.
//!
//! ONNX is protobuf; the numbers are those of `onnx.proto3`. <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3>

/// Version of the format, and of the operators.
const IR_VERSION: u64 = 8;
const OPERATORS: u64 = 17;

/// Types of tensors, as ONNX numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F32 = 1,
    I8 = 3,
    I64 = 7,
}

/// An attribute of an operator.
#[derive(Clone, Copy, Debug)]
pub enum Attribute<'a> {
    Int(&'a str, i64),
    Ints(&'a str, &'a [i64]),
    Float(&'a str, f32),
}

/// A protobuf message.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn float(&mut self, field: u64, value: f32) {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}

/// A graph that is written node by node.
#[derive(Debug, Default)]
pub struct Graph {
    message: Message,
    count: usize,
}

impl Graph {
    /// Adds an operator with one output, and returns the output's name.
    pub fn node(&mut self, operator: &str, inputs: &[&str], attributes: &[Attribute<'_>]) -> String {
        let [output] = self.nodes(operator, inputs, attributes);
        output
    }

    /// Adds an operator with `N` outputs, and returns their names.
    pub fn nodes<const N: usize>(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[Attribute<'_>],
    ) -> [String; N] {
        self.count += 1;
        let outputs = std::array::from_fn(|it| format!("n{}.{it}", self.count));
        let mut node = Message::default();
        for input in inputs {
            node.text(1, input);
        }
        for output in &outputs {
            node.text(2, output);
        }
        node.text(4, operator);
        for attribute in attributes {
            let mut message = Message::default();
            match attribute {
                Attribute::Int(name, value) => {
                    message.text(1, name);
                    message.number(3, value.cast_unsigned());
                    message.number(20, 2);
                }
                Attribute::Ints(name, values) => {
                    message.text(1, name);
                    for value in *values {
                        message.number(8, value.cast_unsigned());
                    }
                    message.number(20, 7);
                }
                Attribute::Float(name, value) => {
                    message.text(1, name);
                    message.float(2, *value);
                    message.number(20, 1);
                }
            }
            node.bytes(5, &message.0);
        }
        self.message.bytes(1, &node.0);
        outputs
    }

    /// Adds a constant of raw little-endian values, and returns its name.
    pub fn constant(&mut self, kind: Kind, shape: &[usize], raw: &[u8]) -> String {
        self.count += 1;
        let name = format!("c{}", self.count);
        let mut tensor = Message::default();
        for dimension in shape {
            tensor.number(1, *dimension as u64);
        }
        tensor.number(2, kind as u64);
        tensor.text(8, &name);
        tensor.bytes(9, raw);
        self.message.bytes(5, &tensor.0);
        name
    }

    /// Adds a constant list of whole numbers.
    pub fn integers(&mut self, values: &[i64]) -> String {
        let raw: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.constant(Kind::I64, &[values.len()], &raw)
    }

    /// Adds a constant number.
    pub fn number(&mut self, value: f32) -> String {
        self.constant(Kind::F32, &[], &value.to_le_bytes())
    }

    /// Declares an input of the graph; dimensions are names, because they vary.
    pub fn input(&mut self, name: &str, kind: Kind, dimensions: &[&str]) {
        self.value(11, name, kind, dimensions);
    }

    /// Declares an output of the graph.
    pub fn output(&mut self, name: &str, kind: Kind, dimensions: &[&str]) {
        self.value(12, name, kind, dimensions);
    }

    fn value(&mut self, field: u64, name: &str, kind: Kind, dimensions: &[&str]) {
        let mut shape = Message::default();
        for name in dimensions {
            let mut dimension = Message::default();
            dimension.text(2, name);
            shape.bytes(1, &dimension.0);
        }
        let mut tensor = Message::default();
        tensor.number(1, kind as u64);
        tensor.bytes(2, &shape.0);
        let mut kind = Message::default();
        kind.bytes(1, &tensor.0);
        let mut value = Message::default();
        value.text(1, name);
        value.bytes(2, &kind.0);
        self.message.bytes(field, &value.0);
    }

    /// The file.
    pub fn file(mut self, name: &str) -> Vec<u8> {
        self.message.text(2, name);
        let mut operators = Message::default();
        operators.number(2, OPERATORS);
        let mut model = Message::default();
        model.number(1, IR_VERSION);
        model.text(2, "sheaf");
        model.bytes(8, &operators.0);
        model.bytes(7, &self.message.0);
        model.0
    }
}

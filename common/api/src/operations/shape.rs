//! The structure of answers, as constants: nothing is computed until the document is made.

use serde_json::{Map, Value, json};
use tools::spec::{MARKET, ToolSpec};

use super::shared::{IGNORED, UNSETTLED};

/// What a JSON value may be.
#[derive(Clone, Copy)]
pub enum Shape {
    Any,
    Bool,
    Integer,
    Number,
    Text,
    /// A time in ISO 8601, UTC.
    Time,
    Uuid,
    Uri,
    /// USDC with six decimals.
    Usdc,
    /// `0x` and 40 hex digits, checksummed.
    Address,
    /// `0x` and 64 hex digits.
    Hash,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// Exactly this boolean.
    Is(bool),
    OrNull(&'static Shape),
    Null,
    List(&'static Shape),
    Object(&'static [Member]),
    /// The members of both.
    Extended(&'static [Member], &'static [Member]),
    /// An object whose member names are not known in advance.
    Map(&'static Shape),
    Either(&'static [Shape]),
    /// A component of the document.
    Ref(&'static Named),
    /// JSON Schema, unchanged.
    Schema(fn() -> Value),
    /// The result of the operation's tool.
    Sold,
}

/// A member of an object.
#[derive(Clone, Copy)]
pub struct Member {
    pub name: &'static str,
    pub always: bool,
    pub shape: Shape,
    pub about: &'static str,
}

/// A shape that becomes a component of the document.
pub struct Named {
    pub name: &'static str,
    pub about: &'static str,
    pub shape: Shape,
}

/// A member that is always present.
pub const fn has(name: &'static str, shape: Shape) -> Member {
    Member { name, always: true, shape, about: "" }
}

/// A member that may be absent.
pub const fn may(name: &'static str, shape: Shape) -> Member {
    Member { name, always: false, shape, about: "" }
}

impl Member {
    pub const fn about(self, about: &'static str) -> Member {
        Member { about, ..self }
    }
}

/// Members that the gate adds to a result that is the whole answer.
static BESIDE_RESULT: [Member; 2] = [IGNORED, UNSETTLED];

/// Turns shapes into JSON Schema and collects the components they refer to.
#[derive(Default)]
pub struct Writer {
    pub components: Map<String, Value>,
}

impl Writer {
    /// The JSON Schema of a shape. `sold` replaces [`Shape::Sold`].
    pub fn schema(&mut self, shape: &Shape, sold: Option<&'static ToolSpec>) -> Value {
        match shape {
            Shape::Any => json!({}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Integer => json!({"type": "integer"}),
            Shape::Number => json!({"type": "number"}),
            Shape::Text => json!({"type": "string"}),
            Shape::Time => json!({"type": "string", "format": "date-time"}),
            Shape::Uuid => json!({"type": "string", "format": "uuid"}),
            Shape::Uri => json!({"type": "string", "format": "uri"}),
            Shape::Usdc => json!({"type": "string", "pattern": r"^-?[0-9]+\.[0-9]{6}$"}),
            Shape::Address => json!({"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"}),
            Shape::Hash => json!({"type": "string", "pattern": "^0x[0-9a-f]{64}$"}),
            Shape::Choice(choices) => json!({"type": "string", "enum": choices}),
            Shape::Is(value) => json!({"type": "boolean", "const": value}),
            Shape::Null => json!({"type": "null"}),
            Shape::OrNull(shape) => or_null(self.schema(shape, sold)),
            Shape::List(of) => json!({"type": "array", "items": self.schema(of, sold)}),
            Shape::Object(members) => self.object(members.iter(), sold),
            Shape::Extended(members, more) => self.object(members.iter().chain(*more), sold),
            Shape::Map(of) => json!({"type": "object", "additionalProperties": self.schema(of, sold)}),
            Shape::Either(shapes) => {
                let each: Vec<Value> = shapes.iter().map(|shape| self.schema(shape, sold)).collect();
                json!({"anyOf": each})
            }
            Shape::Ref(named) => {
                if !self.components.contains_key(named.name) {
                    // Inserted before its members are written, because they may refer back to it.
                    self.components.insert(named.name.to_owned(), Value::Null);
                    let mut schema = self.schema(&named.shape, None);
                    schema["title"] = json!(named.name);
                    if !named.about.is_empty() {
                        schema["description"] = json!(named.about);
                    }
                    self.components.insert(named.name.to_owned(), schema);
                }
                json!({"$ref": format!("#/components/schemas/{}", named.name)})
            }
            Shape::Schema(schema) => schema(),
            Shape::Sold => sold.map_or_else(|| json!({}), |tool| self.result_of(tool)),
        }
    }

    /// A tool's result. Where it is the whole answer, it has the gate's own members too.
    fn result_of(&mut self, tool: &'static ToolSpec) -> Value {
        let mut schema = tool.output_schema();
        let is_whole = tool.bare || MARKET.iter().any(|sold| sold.name == tool.name);
        if is_whole && let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            for member in &BESIDE_RESULT {
                let mut described = self.schema(&member.shape, None);
                described["description"] = json!(member.about);
                members.insert(member.name.to_owned(), described);
            }
        }
        schema
    }

    fn object<'a>(&mut self, members: impl Iterator<Item = &'a Member>, sold: Option<&'static ToolSpec>) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for member in members {
            let mut schema = self.schema(&member.shape, sold);
            if !member.about.is_empty() {
                schema["description"] = json!(member.about);
            }
            properties.insert(member.name.to_owned(), schema);
            if member.always {
                required.push(member.name);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

fn or_null(mut schema: Value) -> Value {
    if let Some(name) = schema["type"].as_str().filter(|_| schema.get("enum").is_none()).map(str::to_owned) {
        schema["type"] = json!([name, "null"]);
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

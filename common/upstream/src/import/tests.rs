use std::time::Instant;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::request::build;
use crate::{AnswerContent, Constant, Outcome, Response, from_yaml, judge};

const NOBODY: Reserved<'static> = &|_| false;

fn selection(operations: &[&str]) -> Selection {
    Selection::new(operations.iter().map(|text| Select::parse(text)).collect(), "0.01")
}

/// A document with one operation: `POST /things/{id}`, or as these members say.
fn document(members: &Value, components: &Value) -> Value {
    let mut operation = json!({
        "operationId": "makeThing", "summary": "Make a thing", "responses": {"200": {"description": "ok"}},
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
    });
    for (name, value) in members.as_object().unwrap() {
        operation[name] = value.clone();
    }
    json!({"openapi": "3.1.0", "servers": [{"url": "https://{region}.example.com/", "variables": {"region": {"default": "eu"}}}],
        "components": components, "paths": {"/things/{id}": {"post": operation}}})
}

fn one(document: &Value) -> ImportedTool {
    let mut imported = from_openapi(document, &selection(&["*"]), NOBODY);
    assert_eq!(imported.refused, [], "{document}");
    imported.tools.remove(0)
}

fn refusal(document: &Value) -> String {
    let imported = from_openapi(document, &selection(&["*"]), NOBODY);
    assert!(imported.tools.is_empty());
    imported.refused[0].why.clone()
}

fn url(tool: &ImportedTool, input: &Value) -> String {
    build(&tool.tool, input.as_object().unwrap()).unwrap().url
}

#[test]
fn a_published_document_becomes_tools() {
    let document = from_yaml(include_str!("../../testdata/petstore.yaml")).unwrap();
    let imported = from_openapi(&document, &Selection { prefix: Some("pets".to_owned()), ..selection(&["*"]) }, NOBODY);
    let refused: Vec<&str> = imported.refused.iter().map(|refused| refused.operation.as_str()).collect();
    assert_eq!((imported.tools.len(), refused), (18, vec!["POST /pet/{petId}/uploadImage"]));
    let named = |name: &str| imported.tools.iter().find(|tool| tool.tool.name == name).unwrap();
    let found = named("pets_find_pets_by_status");
    assert_eq!(found.operation, "GET /pet/findByStatus");
    assert_eq!(
        url(found, &json!({"status": "sold"})),
        "https://petstore3.swagger.io/api/v3/pet/findByStatus?status=sold"
    );
    assert_eq!(found.tool.secrets(), ["pets_petstore_auth"]);
    let pet = named("pets_add_pet");
    let input = json!({"name": "Rex", "photoUrls": ["a"], "category": {"id": 1}});
    assert_eq!(schema::validate(&pet.tool.input_schema, &input), Ok(()));
    assert!(schema::validate(&pet.tool.input_schema, &json!({"nam": "Rex", "photoUrls": []})).is_err());
    let request = build(&pet.tool, input.as_object().unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), input);
    // The document promises a name and a status of three; a real service forgets both.
    let body = br#"{"id": 1, "name": null, "status": "gone", "more": true}"#;
    let response = Response { status: 200, content_type: Some("application/json"), length: None, rpc_id: None, body };
    assert!(matches!(judge(&pet.tool, &response), Outcome::Answer(AnswerContent::Json(_))));
    let wrong = Response { body: br#"{"id": ["one"]}"#, ..response };
    assert!(matches!(judge(&pet.tool, &wrong), Outcome::Failed(_)));
    // Every entry is one that the settings take.
    let entries: Vec<&Value> = imported.tools.iter().map(|tool| &tool.entry).collect();
    let settings = crate::Settings::parse(&json!({"tools": entries}).to_string(), NOBODY).unwrap();
    assert_eq!(settings.tools, imported.tools.iter().map(|tool| tool.tool.clone()).collect::<Vec<_>>());
}

#[test]
fn parameters_and_body_find_their_slots() {
    let string = json!({"type": "string"});
    let tool = one(&document(
        &json!({
            "parameters": [
                {"$ref": "#/components/parameters/Id"},
                {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object", "properties": {"a": string}}},
                {"name": "ids", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "integer"}}},
                {"name": "X-Region", "in": "header", "schema": string},
                {"name": "session", "in": "cookie", "schema": string},
                {"name": "api_key", "in": "query", "required": true, "schema": string},
                {"name": "$top", "in": "query", "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "nullable": true}},
            ],
            "requestBody": {"content": {"application/vnd.things+json": {"schema": {"allOf": [
                {"$ref": "#/components/schemas/Base"},
                {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}, "made": {"type": "string", "readOnly": true}}},
            ]}}}},
            "security": [{"cookie": []}, {"basic": []}],
        }),
        &json!({
            "parameters": {"Id": {"name": "id", "in": "path", "required": true, "schema": string}},
            "schemas": {"Base": {"type": "object", "required": ["color"], "properties": {"color": {"enum": ["red", "blue"]}}}},
            "securitySchemes": {"cookie": {"type": "apiKey", "in": "cookie", "name": "s"}, "basic": {"type": "http", "scheme": "Basic"}},
        }),
    ));
    let schema = &tool.tool.input_schema;
    assert_eq!(schema["required"], json!(["id", "color", "size"]));
    assert_eq!(schema["properties"]["top"], json!({"type": ["integer", "null"], "exclusiveMinimum": 0}));
    assert!(schema["properties"].get("made").is_none() && schema["properties"].get("api_key").is_none());
    let input =
        json!({"id": "7", "filter": {"a": "b"}, "ids": [1, 2], "X-Region": "eu", "top": 5, "color": "red", "size": 3});
    assert_eq!(schema::validate(schema, &input), Ok(()));
    let request = build(&tool.tool, input.as_object().unwrap()).unwrap();
    assert_eq!(request.url, "https://eu.example.com/things/7?%24top=5&filter%5Ba%5D=b&ids=1%2C2");
    assert_eq!(request.body, br#"{"color":"red","size":3}"#);
    let header = |name: &str| request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    assert_eq!(header("content-type"), Some(&Constant::Text("application/vnd.things+json".to_owned())));
    assert_eq!(header("x-region"), Some(&Constant::Text("eu".to_owned())));
    assert!(matches!(header("authorization"), Some(Constant::Secret(secret)) if secret.base64));
    assert_eq!(request.query_secrets[0].0, "api_key");
    for note in [
        "the optional parameter session was left out",
        "store user:password as the secret basic",
        "store the query parameter api_key",
    ] {
        assert!(tool.notes.iter().any(|known| known.starts_with(note)), "{note}: {:?}", tool.notes);
    }
}

#[test]
fn what_says_who_asks_is_the_operators() {
    let parameter = |name: &str, place: &str, required: bool| json!({"name": name, "in": place, "required": required, "schema": {"type": "string"}});
    let members = |parameter: Value| json!({"parameters": [parameter], "responses": {}});
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    for (name, place, secret) in [("Authorization", "header", "authorization"), ("apikey", "query", "apikey")] {
        let mut needed = members(parameter(name, place, true));
        needed["parameters"].as_array_mut().unwrap().push(id.clone());
        let tool = one(&document(&needed, &json!({})));
        assert_eq!((tool.tool.secrets(), &tool.tool.input_schema["required"]), (vec![secret], &json!(["id"])));
        assert!(tool.notes.iter().any(|note| note.starts_with("store the ")), "{:?}", tool.notes);
        // Without a scheme, a service answers those too who have no key.
        let mut optional = members(parameter(name, place, false));
        optional["parameters"].as_array_mut().unwrap().push(id.clone());
        let tool = one(&document(&optional, &json!({})));
        assert_eq!((tool.tool.secrets(), tool.entry.get("constants")), (Vec::new(), None));
        assert_eq!(tool.tool.input_schema["properties"], json!({"id": {"type": "string"}}));
        assert!(tool.notes[0].contains(&format!("{name} was left out: it is a secret")), "{:?}", tool.notes);
    }
}

#[test]
fn rules_that_are_not_kept_refuse_nothing() {
    let schema = json!({"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": false,
        "patternProperties": {"^x-": {"type": "string"}}, "not": {"required": ["y"]}}}});
    let tool =
        one(&document(&json!({"requestBody": {"content": {"application/json": {"schema": schema}}}}), &json!({})));
    let input = json!({"id": "1", "labels": {"x-a": "b"}});
    assert_eq!(schema::validate(&tool.tool.input_schema, &input), Ok(()));
    assert!(tool.notes.iter().any(|note| note.contains("rules such as not")), "{:?}", tool.notes);
}

#[test]
fn an_operation_is_not_sold_without_a_body_that_cannot_be_sent() {
    let of = |required: Value, kind: &str| {
        let mut body = json!({"content": {kind: {"schema": {"type": "string", "format": "binary"}}}});
        if !required.is_null() {
            body["required"] = required;
        }
        document(&json!({"requestBody": body}), &json!({}))
    };
    for (required, kind) in
        [(Value::Null, "multipart/form-data"), (json!(true), "text/csv"), (Value::Null, "image/png")]
    {
        let found = refusal(&of(required, kind));
        assert!(found.starts_with(&format!("needs a body that cannot be sent: it is {kind}")), "{found}");
    }
    let optional = one(&of(json!(false), "image/png"));
    assert!(optional.notes[0].starts_with("the optional body"), "{:?}", optional.notes);
    let swagger = |field: Value| {
        let file = json!({"name": "picture", "in": "formData", "type": "file", "required": false});
        let operation = json!({"parameters": [file, field], "consumes": ["multipart/form-data"], "responses": {}});
        json!({"swagger": "2.0", "host": "a.example", "paths": {"/a": {"post": operation}}})
    };
    for kind in ["file", "string"] {
        let field = json!({"name": "f", "in": "formData", "type": kind});
        assert!(refusal(&swagger(field.clone())).starts_with("needs a body that cannot be sent"), "{kind}");
        let mut optional = field;
        optional["required"] = json!(false);
        assert_eq!(one(&swagger(optional)).tool.input_schema["properties"], json!({}));
    }
}

/// The schema of a body's member, which has these components beside it.
fn body_schema(schema: &Value, components: &Value) -> Value {
    let whole = json!({"type": "object", "properties": {"part": schema}});
    let body = json!({"required": true, "content": {"application/json": {"schema": whole}}});
    let tool = one(&document(&json!({"requestBody": body}), &json!({"schemas": components})));
    tool.tool.input_schema["properties"]["part"].clone()
}

#[test]
fn what_is_required_beside_its_description_stays_required() {
    let base = json!({"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "string", "readOnly": true}}});
    let components =
        json!({"Base": base, "Union": {"anyOf": [{"type": "object", "properties": {"name": {}}}, {"type": "string"}]}});
    let base = json!({"$ref": "#/components/schemas/Base"});
    let is_valid = |schema: &Value, value: Value| {
        let found = schema::validate(&body_schema(schema, &components), &value).is_ok();
        assert!(schema::validate(&body_schema(schema, &components), &json!({"name": "a", "b": "c"})).is_ok());
        found
    };
    for schema in [
        json!({"allOf": [base], "required": ["name"]}),
        json!({"allOf": [base, {"required": ["name", "id", "gone"]}]}),
        json!({"allOf": [{"required": ["name"]}, {"allOf": [base]}]}),
        json!({"allOf": [{"$ref": "#/components/schemas/Union"}], "required": ["name", "id"], "type": "object"}),
        json!({"allOf": [base], "anyOf": [{"required": ["name"]}, {"required": ["name"], "minProperties": 7}]}),
    ] {
        assert!(!is_valid(&schema, json!({"b": "c"})), "{schema}: {}", body_schema(&schema, &components));
    }
    // Nobody can send what is read only, nor know what nothing describes.
    for schema in [
        json!({"allOf": [base, {"required": ["id", "gone"]}]}),
        json!({"allOf": [base], "anyOf": [{"required": ["id"]}, {"required": ["name"]}]}),
    ] {
        assert!(is_valid(&schema, json!({"b": "c"})), "{schema}: {}", body_schema(&schema, &components));
        assert!(!body_schema(&schema, &components).to_string().contains("required"));
    }
}

#[test]
fn a_body_whose_alternatives_all_require_members_is_required() {
    let of = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "string"}}});
    let open = json!({"type": "object", "properties": {"c": {"type": "string"}}});
    for (schema, required) in [
        (json!({"oneOf": [of("a"), of("b")]}), json!(["id", "body"])),
        (json!({"allOf": [{"anyOf": [of("a"), of("b")]}, {"anyOf": [open, of("b")]}]}), json!(["id", "body"])),
        (json!({"oneOf": [of("a"), open]}), json!(["id"])),
        (json!({"anyOf": [of("a"), {"type": "null"}]}), json!(["id"])),
    ] {
        let body = json!({"content": {"application/json": {"schema": schema}}});
        let tool = one(&document(&json!({"requestBody": body}), &json!({})));
        assert_eq!(tool.tool.input_schema["required"], required, "{schema}");
    }
}

#[test]
fn swagger_2_is_read_too() {
    let document = json!({
        "swagger": "2.0", "host": "api.example.com", "basePath": "/v1", "schemes": ["http", "https"],
        "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}, "security": [{"key": []}],
        "paths": {"/a/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "type": "integer"}], "post": {
            "consumes": ["application/x-www-form-urlencoded"], "produces": ["image/png"],
            "parameters": [
                {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
                {"name": "title", "in": "formData", "type": "string", "required": true, "maxLength": 5},
            ],
            "responses": {"200": {"schema": {"type": "file"}}}}}},
    });
    let tool = one(&document);
    assert_eq!(tool.tool.name, "post_a_id");
    let request = build(&tool.tool, json!({"id": 3, "tags": ["a", "b"], "title": "x y"}).as_object().unwrap()).unwrap();
    assert_eq!(
        (request.url.as_str(), &request.body[..]),
        ("https://api.example.com/v1/a/3?tags=a%7Cb", &b"title=x%20y"[..])
    );
    assert_eq!(tool.entry["answers"], json!(["image/png"]));
    assert_eq!(tool.tool.input_schema["properties"]["title"]["maxLength"], 5);
}

#[test]
fn the_nearest_description_is_shown() {
    let kind = json!({"Kind": {"type": "string", "title": "Kind", "description": "Any kind"}});
    let described = |description: Value, schema: Value| {
        let parameter = json!({"name": "q", "in": "query", "description": description, "schema": schema});
        let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
        let tool = one(&document(&json!({"parameters": [id, parameter]}), &json!({"schemas": kind})));
        tool.tool.input_schema["properties"]["q"]["description"].clone()
    };
    let shared = json!({"$ref": "#/components/schemas/Kind"});
    assert_eq!(described(json!("What to look for"), json!({"type": "string", "title": "Q"})), "What to look for");
    assert_eq!(described(json!("The kind of pet"), shared.clone()), "The kind of pet");
    assert_eq!(described(Value::Null, shared.clone()), "Any kind");
    let mut titled = shared;
    titled["title"] = json!("K");
    assert_eq!(described(Value::Null, titled), "Any kind");
    assert_eq!(described(Value::Null, json!({"type": "string", "title": "Q"})), "Q");
}

#[test]
fn documented_errors_of_callers_are_theirs() {
    let of = |statuses: &[&str]| {
        let responses: Map<String, Value> = statuses.iter().map(|status| ((*status).to_owned(), json!({}))).collect();
        one(&document(&json!({"responses": responses}), &json!({})))
    };
    let tool = of(&["200", "401", "402", "403", "404", "407", "408", "410", "429", "4XX", "451", "500"]);
    assert_eq!(tool.entry["caller_errors"], json!([400, 402, 404, 409, 410, 422, 451]));
    assert_eq!(Tool::read(&tool.entry, "", NOBODY).as_ref(), Ok(&tool.tool));
    assert_eq!(of(&["200", "401", "404", "422"]).entry.get("caller_errors"), None);
}

#[test]
fn servers_are_relative_to_the_documents_address() {
    let paths = json!({"/a": {"get": {"responses": {"200": {"description": "ok"}}}}});
    let (v3, v2) = (json!({"openapi": "3.0.0", "paths": paths}), json!({"swagger": "2.0", "paths": paths}));
    let with = |document: &Value, members: Value| {
        let mut document = document.clone();
        document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        document
    };
    let (near, far) = ("http://127.0.0.1:8000/docs/openapi.json?v=1", "https://api.example.com/docs/openapi.json");
    for (document, url, asked) in [
        (v3.clone(), near, "http://127.0.0.1:8000/a"),
        (with(&v3, json!({"servers": [{"url": "/v1/"}]})), far, "https://api.example.com/v1/a"),
        (with(&v3, json!({"servers": [{"url": "../v2"}]})), far, "https://api.example.com/v2/a"),
        (with(&v3, json!({"servers": [{"url": "//b.example"}]})), far, "https://b.example/a"),
        (with(&v3, json!({"servers": [{"url": "https://b.example/x"}]})), far, "https://b.example/x/a"),
        (v2.clone(), near, "http://127.0.0.1:8000/a"),
        (with(&v2, json!({"basePath": "/"})), far, "https://api.example.com/a"),
        (with(&v2, json!({"host": "b.example", "basePath": "/v1"})), far, "https://b.example/v1/a"),
    ] {
        let private = url == near;
        let selection = Selection { document_url: Some(url.to_owned()), private, ..selection(&["*"]) };
        let imported = from_openapi(&document, &selection, NOBODY);
        assert_eq!(imported.refused, [], "{document}");
        assert_eq!(build(&imported.tools[0].tool, &Map::new()).unwrap().url, asked);
    }
    let given = Selection { server: Some("http://10.0.0.1".to_owned()), ..selection(&["*"]) };
    let refused = &from_openapi(&v3, &given, NOBODY).refused[0];
    assert_eq!(refused.why, "the server http://10.0.0.1 is a private host; add PRIVATE=1 (--private) if it is meant");
    for document in [v3, v2] {
        assert!(refusal(&document).starts_with("has no server in the document; give its address: SERVER="));
    }
}

#[test]
fn what_cannot_be_taken_is_named_with_a_reason() {
    let none = json!({});
    for (members, components, why) in [
        (
            json!({"requestBody": {"required": true, "content": {"multipart/form-data": {}}}}),
            none.clone(),
            "needs a body that cannot be sent: it is multipart",
        ),
        (json!({"responses": {"200": {"content": {"text/html": {}}}}}), none.clone(), "answers with text/html"),
        (
            json!({"responses": {"302": {"description": "there"}, "404": {"description": "gone"}}}),
            none.clone(),
            "answers with redirects alone",
        ),
        (
            json!({"parameters": [{"$ref": "other.json#/x"}]}),
            none.clone(),
            "refers to another document (other.json#/x)",
        ),
        (json!({"parameters": [{"$ref": "#/x"}]}), none.clone(), "refers to #/x, which is not"),
        (
            json!({"parameters": [{"$ref": "#/components/a"}]}),
            json!({"a": {"$ref": "#/components/a"}}),
            "has more than 16 references",
        ),
        (
            json!({"parameters": [{"name": "c", "in": "cookie", "required": true}]}),
            none.clone(),
            "needs the parameter c in cookie",
        ),
        (json!({"security": [{"x": []}]}), none.clone(), "needs the security scheme x, which is not described"),
        (
            json!({"servers": [{"url": "http://example.com"}]}),
            none.clone(),
            "its server http://example.com must begin with https",
        ),
        (json!({"servers": [{"url": "/v1"}]}), none.clone(), "its server /v1 has no host; give its address: SERVER="),
        (
            json!({"servers": [{"url": "http://10.0.0.1"}]}),
            none.clone(),
            "its server http://10.0.0.1 is a private host; add PRIVATE=1",
        ),
    ] {
        let found = refusal(&document(&members, &components));
        assert!(found.starts_with(why), "{found}");
    }
    for status in ["204", "207", "default"] {
        one(&document(&json!({"responses": {"301": {"description": "there"}, status: {"description": "ok"}}}), &none));
    }
    assert!(refusal(&json!({})).starts_with("the document is neither"));
    let petstore = document(&none, &none);
    let imported = from_openapi(&petstore, &selection(&["makeThing", "tag:x", "GET /things/{id}"]), NOBODY);
    let refused: Vec<&str> = imported.refused.iter().map(|refused| refused.operation.as_str()).collect();
    assert_eq!((imported.tools.len(), refused), (1, vec!["tag:x", "GET /things/{id}"]));
    let taken = from_openapi(&petstore, &selection(&["*"]), &|name| name == "make_thing");
    assert_eq!(taken.tools[0].tool.name, "make_thing_2");
}

#[test]
fn large_and_recursive_schemas_are_cut_in_little_time() {
    let reference = |name: String| json!({"$ref": format!("#/components/schemas/{name}")});
    let mut schemas = Map::new();
    schemas.insert(
        "Tree".to_owned(),
        json!({"type": "object", "properties": {
        "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}),
    );
    // Each level doubles: 2^40 parts if they were written out.
    for level in 0..40 {
        let next = reference(format!("L{}", level + 1));
        schemas.insert(
            format!("L{level}"),
            json!({"type": "object", "properties": {"a": next, "b": {"allOf": [next, next]}}}),
        );
    }
    schemas.insert("L40".to_owned(), json!({"enum": (0..100_000).collect::<Vec<u32>>()}));
    let mut nested = reference("Tree".to_owned());
    for _ in 0..60 {
        nested = json!({"allOf": [nested]});
    }
    schemas.insert("Nested".to_owned(), nested);
    let wide: Map<String, Value> = (0..50_000).map(|index| (format!("m{index}"), json!({"type": "string"}))).collect();
    schemas.insert("Wide".to_owned(), json!({"type": "object", "properties": wide}));
    let begun = Instant::now();
    for name in ["Tree", "L0", "Nested", "Wide"] {
        let body = json!({"required": true, "content": {"application/json": {"schema": reference(name.to_owned())}}});
        let mut document = document(&json!({"requestBody": body.clone(), "responses": {"200": body}}), &json!({}));
        document["components"]["schemas"] = Value::Object(schemas.clone());
        let imported = from_openapi(&document, &selection(&["*"]), NOBODY);
        match name {
            // Fifty thousand members are no input that somebody could read.
            "Wide" => {
                assert!(imported.refused[0].why.starts_with("has an input that is too large"), "{:?}", imported.refused)
            }
            _ => {
                let tool = &imported.tools[0];
                assert!(tool.notes.iter().any(|note| note.contains("was cut")), "{name}: {:?}", tool.notes);
                assert!(tool.entry.to_string().len() < 40_000);
            }
        }
    }
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn an_mcp_servers_tools_are_read_and_their_results_judged() {
    let list: Value = serde_json::from_str(include_str!("../../testdata/github-mcp.json")).unwrap();
    let server = McpServer {
        address: "https://mcp.example.com/mcp".to_owned(),
        private: false,
        only: Vec::new(),
        price: json!("0.02"),
        prefix: Some("gh".to_owned()),
        category: None,
        headers: json!({"authorization": {"secret": "gh_key", "prefix": "Bearer "}}).as_object().unwrap().clone(),
    };
    let imported = from_mcp(&list, &server, NOBODY);
    assert_eq!((imported.tools.len(), imported.refused), (4, Vec::new()));
    let tool = &imported.tools.iter().find(|tool| tool.operation == "list_commits").unwrap().tool;
    assert_eq!((tool.name.as_str(), tool.safe_to_retry, tool.secrets()), ("gh_list_commits", true, vec!["gh_key"]));
    let request = build(tool, json!({"owner": "a", "repo": "b"}).as_object().unwrap()).unwrap();
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["params"], json!({"name": "list_commits", "arguments": {"owner": "a", "repo": "b"}}));
    assert!(schema::validate(&tool.input_schema, &json!({"owner": "a", "repo": "b", "extra": 1})).is_err());
    let some = McpServer { only: vec!["list_commits".to_owned(), "typo".to_owned()], ..server.clone() };
    let imported = from_mcp(&list, &some, NOBODY);
    assert_eq!((imported.tools.len(), imported.tools[0].operation.as_str()), (1, "list_commits"));
    let typo = Refused { operation: "typo".to_owned(), why: "names no tool of the server".to_owned() };
    assert_eq!(imported.refused, [typo]);
    let near = McpServer { address: "http://127.0.0.1:9/mcp".to_owned(), ..server.clone() };
    assert!(from_mcp(&list, &near, NOBODY).refused[0].why.contains("is a private host; add PRIVATE=1"));
    let odd = json!({"nextCursor": "x", "tools": [
        {"name": "a"}, {"inputSchema": {}}, {"name": "b", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
        {"name": "c", "inputSchema": {"type": "object"}}, {"name": "c", "inputSchema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}},
    ]});
    let imported = from_mcp(&odd, &server, NOBODY);
    let names: Vec<&str> = imported.tools.iter().map(|tool| tool.tool.name.as_str()).collect();
    assert_eq!((names, imported.refused.len()), (vec!["gh_c", "gh_c_2"], 4));
}

/// Any JSON with the words of these documents in it.
fn documents() -> impl Strategy<Value = Value> {
    let words = [
        "paths",
        "/a/{b}",
        "get",
        "post",
        "parameters",
        "name",
        "in",
        "query",
        "path",
        "header",
        "schema",
        "type",
        "object",
        "array",
        "properties",
        "items",
        "$ref",
        "#/paths",
        "#",
        "#/components/schemas/a",
        "components",
        "schemas",
        "a",
        "b",
        "allOf",
        "anyOf",
        "required",
        "requestBody",
        "content",
        "application/json",
        "responses",
        "200",
        "security",
        "securitySchemes",
        "servers",
        "url",
        "https://a.example",
        "tools",
        "inputSchema",
        "outputSchema",
        "price",
        "slots",
        "body",
        "method",
        "address",
        "enum",
        "\u{202e}",
        "{",
    ];
    let word = prop::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_makes_a_panic(part in documents(), other in documents()) {
        let mut whole = document(&json!({"parameters": part, "requestBody": other}), &json!({"schemas": {"a": part, "b": other}}));
        for version in ["openapi", "swagger"] {
            whole[version] = json!(if version == "swagger" { "2.0" } else { "3.0.0" });
            whole["host"] = json!("a.example");
            for operation in ["requestBody", "responses", "security"] {
                whole["paths"]["/things/{id}"]["post"][operation] = part.clone();
                for imported in from_openapi(&whole, &selection(&["*"]), NOBODY).tools {
                    prop_assert!(build(&imported.tool, &Map::new()).is_err(), "the path needs a member");
                }
            }
            whole.as_object_mut().unwrap().remove("openapi");
        }
        let server = McpServer { address: "https://a.example".into(), private: false, only: Vec::new(), price: json!("1"), prefix: None, category: None, headers: Map::new() };
        let list = json!({"tools": [{"name": "x", "inputSchema": {"type": "object", "properties": part}, "outputSchema": other}]});
        let imported = from_mcp(&list, &server, NOBODY);
        prop_assert_eq!(imported.tools.len() + imported.refused.len(), 1);
        let entry = json!({"tools": [part, {"name": other, "slots": part, "constants": other, "price": part, "input_schema": other}]});
        prop_assert!(crate::Settings::read(&entry, NOBODY).is_err());
    }
}

//! Single pieces: a logo, icons, a card for shared links, a QR code. SVG files of the job.

use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use platform::net::FetchPolicy;
use platform::store::{Key, StoreError, Write};
use serde_json::{Map, Value, json};
use tools::files::{self, FileRow, Owner};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};
use website::design::assets::{self, Asset, COLOR, Piece};

use crate::build::{COLOR as A_COLOR, KINDS, LETTERS};

const PIECES: [&str; 4] = ["logo", "icons", "social_card", "qr"];
const QR: &str = "qr";

pub static SPEC: ToolSpec = ToolSpec {
    name: "build_asset",
    title: "Digital asset",
    summary: "Draws a logo, a set of icons, a card for shared links or a QR code, as SVG",
    group: "builds",
    paths: &["/v1/tools/build/asset"],
    price: Price::Fixed(Usdc::from_micro(250_000)),
    category: "build",
    deadline: Duration::from_secs(20),
    input: &[
        Field::required("kind", Kind::Choice(&PIECES), "What to draw"),
        Field::optional(
            "name",
            Kind::Text { min: 1, max: 100, format: Some(&LETTERS) },
            "Whose it is. Needed, except for a QR code",
        ),
        Field::optional("line", Kind::Text { min: 0, max: 200, format: None }, "One line about it, on a card"),
        Field::optional("color", Kind::Text { min: 7, max: 7, format: Some(&A_COLOR) }, "Such as #0a5c36"),
        Field::optional("type", Kind::Choice(&KINDS), "What it is, for the drawing on a card"),
        Field::optional(
            "text",
            Kind::Text { min: 1, max: 1_000, format: None },
            "What a QR code says: an address, or any text",
        ),
    ],
    judged: &["name", "line", "text"],
    check,
    example: || json!({"kind": "qr", "text": "https://example.com/"}),
    output: || {
        json!({"type": "object", "required": ["kind", "files"], "properties": {
            "kind": {"type": "string"},
            "files": {"type": "array", "items": {"type": "object", "properties": {
                "name": {"type": "string"},
                "content_type": {"type": "string"},
                "svg": {"type": "string", "description": "The file itself"},
                "download_url": {"type": "string", "description": "Where it can be fetched for 30 days, with your proof or token"},
            }}},
        }})
    },
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn check(input: &Map<String, Value>, _: &FetchPolicy) -> Vec<FieldError> {
    let is_qr = input.get("kind").and_then(Value::as_str) == Some(QR);
    let needed = if is_qr { "text" } else { "name" };
    match input.get(needed).and_then(Value::as_str) {
        None => vec![FieldError::new(needed, "is required for this kind")],
        Some(text) if is_qr && assets::qr(text).is_none() => vec![FieldError::new(needed, "is too long for a QR code")],
        Some(_) => Vec::new(),
    }
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let drawn = draw(&task).ok_or_else(|| ToolError::internal("it could not be drawn"))?;
        let mut shown = Vec::new();
        for asset in &drawn {
            keep(&toolbox, &task, asset).await.map_err(|error| ToolError::internal(error.to_string()))?;
            shown.push(json!({
                "name": asset.name,
                "content_type": "image/svg+xml",
                "svg": asset.svg,
                "download_url": format!("/v1/requests/{}/files/{}", task.request_id, asset.name),
            }));
        }
        Ok(Output::new(json!({"kind": task.text("kind"), "files": shown}), Source::embedded("build")))
    })
}

fn draw(task: &Task) -> Option<Vec<Asset>> {
    let kind = task.input.get("type").cloned().and_then(|kind| serde_json::from_value(kind).ok()).unwrap_or_default();
    let color = Some(task.text("color")).filter(|color| !color.is_empty()).unwrap_or(COLOR);
    let piece = Piece { name: task.text("name"), line: task.text("line"), color, kind };
    match task.text("kind") {
        "logo" => Some(piece.logo()),
        "icons" => Some(piece.icons()),
        "social_card" => Some(piece.social_card()),
        _ => assets::qr(task.text("text")),
    }
}

/// Among the job's files.
async fn keep(toolbox: &Toolbox, task: &Task, asset: &Asset) -> Result<(), StoreError> {
    let bytes = asset.svg.clone().into_bytes();
    let row = FileRow::of(asset.name, "image/svg+xml", bytes.len() as u64, toolbox.clock.now());
    let owner = Owner { request_id: task.request_id, price: task.price };
    let open = Write::check(&toolbox.db.tables.jobs, Key::of_job(task.request_id)).only_if("attribute_exists(#open)");
    let kept = files::keep(&toolbox.db, &*toolbox.blobs, owner, open, row, Some(bytes)).await?;
    kept.map_err(|why| StoreError::new(format_args!("a file was not kept: {why:?}")))
}

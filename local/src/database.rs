//! The embedded DynamoDB and its tables, created from the definition that a test compares with the template.

use std::path::Path;

use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, StreamSpecification, StreamViewType, TimeToLiveSpecification,
};
use platform::config::Tables;
use platform::store::Db;
use platform::store::table::{TABLES, TTL_ATTRIBUTE, TableDefinition};

use crate::Error;

/// Starts the embedded DynamoDB on a free port and returns its endpoint. With `file`, its data survives restarts.
pub async fn start(file: Option<&Path>) -> Result<String, Error> {
    let database = match file {
        Some(file) => dynoxide::Database::new(&file.to_string_lossy())?,
        None => dynoxide::Database::memory()?,
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()));
    Ok(endpoint)
}

/// Creates missing tables.
pub async fn create_tables(db: &Db) -> Result<(), Error> {
    for table in &TABLES {
        create_table(db, table).await?;
    }
    Ok(())
}

pub(crate) fn table_name<'a>(tables: &'a Tables, word: &str) -> &'a str {
    match word {
        "jobs" => &tables.jobs,
        "ledger" => &tables.ledger,
        "agents" => &tables.agents,
        "messages" => &tables.messages,
        _ => &tables.souls,
    }
}

async fn create_table(db: &Db, table: &TableDefinition) -> Result<(), Error> {
    let name = table_name(&db.tables, table.word);
    let mut request = db
        .client()
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("pk", ScalarAttributeType::S)?)
        .attribute_definitions(attribute("sk", ScalarAttributeType::S)?)
        .key_schema(key("pk", KeyType::Hash)?)
        .key_schema(key("sk", KeyType::Range)?);
    for index in table.indexes {
        let projection = Projection::builder()
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(index.included.iter().map(|name| (*name).to_owned()).collect()))
            .build();
        let definition = GlobalSecondaryIndex::builder()
            .index_name(index.name)
            .key_schema(key(index.partition, KeyType::Hash)?)
            .key_schema(key(index.sort, KeyType::Range)?)
            .projection(projection)
            .build()?;
        request = request
            .attribute_definitions(attribute(index.partition, ScalarAttributeType::S)?)
            .attribute_definitions(attribute(index.sort, ScalarAttributeType::N)?)
            .global_secondary_indexes(definition);
    }
    if table.stream {
        let stream = StreamSpecification::builder()
            .stream_enabled(true)
            .stream_view_type(StreamViewType::NewAndOldImages)
            .build()?;
        request = request.stream_specification(stream);
    }
    match request.send().await {
        Ok(_) => {}
        Err(error) if matches!(error.as_service_error(), Some(CreateTableError::ResourceInUseException(_))) => {
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    let ttl = TimeToLiveSpecification::builder().attribute_name(TTL_ATTRIBUTE).enabled(true).build()?;
    db.client().update_time_to_live().table_name(name).time_to_live_specification(ttl).send().await?;
    Ok(())
}

fn attribute(name: &str, kind: ScalarAttributeType) -> Result<AttributeDefinition, Error> {
    Ok(AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()?)
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, Error> {
    Ok(KeySchemaElement::builder().attribute_name(name).key_type(kind).build()?)
}

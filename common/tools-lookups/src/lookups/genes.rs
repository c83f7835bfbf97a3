//! Genes and their variants.

use base::input::{Field, Format, Kind};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::molecules::OPEN_TARGETS;
use super::row::*;

/// <https://www.ncbi.nlm.nih.gov/books/NBK25499/> (E-utilities in depth, read Nov 2026): three requests a second, ten with a
/// key.
static NCBI: Source = Source {
    provider: "ncbi",
    origin: "https://eutils.ncbi.nlm.nih.gov",
    name: "US National Center for Biotechnology Information",
    url: "https://www.ncbi.nlm.nih.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    key: Key::MayQuery("api_key"),
    failed: &[
        Failed::At("/error"),
        Failed::At("/ERROR"),
        Failed::At("/esearchresult/ERROR"),
        Failed::At("/linksets/*/ERROR"),
    ],
};

/// <https://gtexportal.org/api/v2/redoc> (read Nov 2026).
static GTEX: Source = Source {
    provider: "gtex",
    origin: "https://gtexportal.org",
    name: "Genotype-Tissue Expression project, GTEx Portal (dbGaP phs000424)",
    url: "https://gtexportal.org/",
    licence: "Open access; cite the GTEx Portal",
    failed: &[Failed::At("/detail")],
    ..SOURCE
};

/// <https://reactome.org/ContentService/> (read Nov 2026).
static REACTOME: Source = Source {
    provider: "reactome",
    origin: "https://reactome.org",
    name: "Reactome",
    url: "https://reactome.org/",
    licence: "CC0 1.0",
    per_second: 2.0,
    ..SOURCE
};

static VCV: Format = Format {
    name: None,
    pattern: Some(r"^VCV[0-9]{1,9}(\.[0-9]{1,4})?$"),
    matches: |text| {
        let Some(rest) = text.strip_prefix("VCV") else { return false };
        let (number, version) = rest.split_once('.').unwrap_or((rest, "1"));
        let is_number = |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        is_number(number, 9) && is_number(version, 4)
    },
    message: "must be VCV and digits",
};
static RSID: Format = Format {
    name: None,
    pattern: Some("^rs[0-9]{1,12}$"),
    matches: |text| {
        text.strip_prefix("rs")
            .is_some_and(|digits| (1..=12).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()))
    },
    message: "must be rs and digits",
};

const GENE_ID: Field = Field::required("gene_id", formed(&NUMBER_12), "The NCBI Gene ID, such as 7157");
const GENE: Field = Field::required("gene", formed(&TOKEN), "An official human symbol, or an Ensembl gene ID");
const TAXON: Field = Field::optional("taxon_id", whole(1, 999_999_999), "The organism; 9606 (human) where left out");

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "gene_resolve",
            title: "Gene resolve",
            summary: "Genes behind a symbol or alias in NCBI Gene: ID, symbol, name, aliases, organism, place",
            paths: &["/v1/tools/resolve/gene"],
            input: &[Field::required("query", formed(&TOKEN), "A symbol, an alias or an Ensembl ID"), TAXON, limit(10)],
            example: || json!({"query": "HER2"}),
            ..LOOKUP
        },
        source: &NCBI,
        requests: &[
            Request {
                paths: &["/entrez/eutils/esearch.fcgi"],
                query: &[
                    Pair::One("db", "gene"),
                    Pair::One("term", "{query|phrase}[gene] AND {taxon_id=9606}[taxid] AND alive[prop]"),
                    Pair::One("retmode", "json"),
                    Pair::One("retmax", "{limit=5}"),
                ],
                genuine: &["/esearchresult/idlist"],
                take: &[Take::At("ids", "/esearchresult/idlist")],
                ..GET
            },
            summary_of("gene"),
        ],
        reshape: summaries,
        found: "/rows",
        answer: &[
            integer("total", "/total"),
            rows(
                "matches",
                "/rows",
                &[
                    text("gene_id", "/uid"),
                    text("symbol", "/name"),
                    text("name", "/description"),
                    text("aliases", "/otheraliases"),
                    text("organism", "/organism/scientificname"),
                    text("chromosome", "/chromosome"),
                    text("band", "/maplocation"),
                ],
                5,
            ),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "gene_summary",
            title: "Gene summary",
            summary: "A gene in NCBI Gene, by ID or official symbol: names, place, exons, curated summary, OMIM",
            paths: &["/v1/tools/lookup/gene-summary"],
            input: &[
                Field::optional("gene_id", formed(&NUMBER_12), "The NCBI Gene ID"),
                Field::optional("symbol", formed(&TOKEN), "The official symbol"),
                TAXON,
            ],
            check: |input, _| one_of(input, &["gene_id", "symbol"]),
            example: || json!({"symbol": "TP53"}),
            ..LOOKUP
        },
        source: &NCBI,
        requests: &[
            Request {
                paths: &["/entrez/eutils/{search}"],
                query: &[
                    Pair::One("db", "gene"),
                    Pair::One("term", "{symbol|phrase}[sym] AND {taxon_id=9606}[taxid] AND alive[prop]"),
                    Pair::One("retmode", "json"),
                    Pair::One("retmax", "10"),
                ],
                genuine: &["/esearchresult/idlist"],
                take: &[Take::At("ids", "/esearchresult/idlist/0")],
                ..GET
            },
            summary_of("gene"),
        ],
        derive: |input, _| match input.get("gene_id").cloned() {
            Some(id) => drop(input.insert("ids".to_owned(), id)),
            None => drop(input.insert("search".to_owned(), json!("esearch.fcgi"))),
        },
        reshape: |answers, input| {
            let mut summaries = summaries(answers.clone(), input);
            summaries["others"] = answers.pointer("/0/esearchresult/idlist").cloned().unwrap_or_default();
            summaries
        },
        found: "/rows/0/name",
        answer: &[
            object(
                "gene",
                "/rows/0",
                &[
                    text("gene_id", "/uid"),
                    text("symbol", "/name"),
                    text("name", "/description"),
                    text("aliases", "/otheraliases"),
                    text("organism", "/organism/scientificname"),
                    integer("taxon_id", "/organism/taxid"),
                    text("chromosome", "/chromosome"),
                    text("band", "/maplocation"),
                    text("accession", "/genomicinfo/0/chraccver"),
                    integer("start", "/genomicinfo/0/chrstart").about("Zero-based"),
                    integer("stop", "/genomicinfo/0/chrstop"),
                    integer("exons", "/genomicinfo/0/exoncount"),
                    made("summary", "/summary", As::Text(5_000)),
                    texts("omim", "/mim"),
                    text("replaced_by", "/currentid"),
                ],
            ),
            texts("all_gene_ids", "/others"),
        ],
        keep: DAYS_7,
        notice: Some(NOT_MEDICAL),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "gene_publications",
            title: "Gene publications",
            summary: "PubMed papers that NCBI links to a gene, most recently added first: citations only",
            paths: &["/v1/tools/lookup/gene-publications"],
            input: &[GENE_ID, limit(20)],
            example: || json!({"gene_id": "7157", "limit": 3}),
            ..LOOKUP
        },
        source: &NCBI,
        requests: &[
            Request {
                paths: &["/entrez/eutils/elink.fcgi"],
                query: &[
                    Pair::One("dbfrom", "gene"),
                    Pair::One("db", "pubmed"),
                    Pair::One("linkname", "gene_pubmed"),
                    Pair::One("id", "{gene_id}"),
                    Pair::One("retmode", "json"),
                ],
                genuine: &["/linksets"],
                take: &[Take::Pick("ids", newest_papers)],
                ..GET
            },
            summary_of("pubmed"),
        ],
        reshape: |answers, input| {
            let total =
                answers.pointer("/0/linksets/0/linksetdbs/0/links").and_then(Value::as_array).map_or(0, Vec::len);
            let mut summaries = summaries(answers, input);
            summaries["total"] = json!(total);
            summaries
        },
        found: "/rows",
        answer: &[
            integer("total", "/total"),
            rows(
                "papers",
                "/rows",
                &[
                    text("pubmed_id", "/uid"),
                    text("title", "/title"),
                    text("journal", "/fulljournalname"),
                    text("published", "/pubdate"),
                    texts("authors", "/authors/*/name"),
                    text("doi_or_page", "/elocationid"),
                    texts("kinds", "/pubtype"),
                ],
                10,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "gene_pathways",
            title: "Gene pathways",
            summary: "Reactome's lowest-level pathways of a gene's products",
            paths: &["/v1/tools/lookup/gene-pathways"],
            input: &[GENE_ID, TAXON, limit(100)],
            example: || json!({"gene_id": "7157", "limit": 1}),
            ..LOOKUP
        },
        source: &REACTOME,
        requests: &[Request {
            // The resource may have either name: the documented one, or the one that its clients use.
            paths: &[
                "/ContentService/data/mapping/NCBI%20Gene/{gene_id}/pathways",
                "/ContentService/data/mapping/NCBI/{gene_id}/pathways",
            ],
            query: &[Pair::One("species", "{taxon_id=9606}")],
            absent: &[404],
            genuine: &[""],
            ..GET
        }],
        reshape: |answer, _| json!({"total": answer.as_array().map_or(0, Vec::len), "pathways": answer}),
        found: "/pathways",
        answer: &[
            integer("total", "/total"),
            rows(
                "pathways",
                "/pathways",
                &[
                    text("id", "/stId"),
                    text("name", "/displayName"),
                    text("species", "/speciesName"),
                    flag("inferred", "/isInferred"),
                    flag("in_disease", "/isInDisease"),
                ],
                50,
            ),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "gene_expression",
            title: "Gene expression",
            summary: "Median expression of a human gene in normal tissues (GTEx), highest first, in TPM",
            paths: &["/v1/tools/lookup/gene-expression"],
            input: &[GENE, limit(60)],
            example: || json!({"gene": "TP53", "limit": 2}),
            ..LOOKUP
        },
        source: &GTEX,
        requests: &[
            Request {
                paths: &["/api/v2/reference/gene"],
                query: &[Pair::One("geneId", "{gene}"), Pair::One("gencodeVersion", "v26")],
                genuine: &["/data"],
                take: &[Take::At("gencode", "/data/0/gencodeId")],
                ..GET
            },
            Request {
                paths: &["/api/v2/expression/medianGeneExpression"],
                query: &[
                    Pair::One("gencodeId", "{gencode}"),
                    Pair::One("datasetId", "gtex_v8"),
                    Pair::One("itemsPerPage", "100"),
                ],
                genuine: &["/data"],
                ..GET
            },
        ],
        reshape: |mut answers, _| {
            let tissues = answers.pointer_mut("/1/data").and_then(Value::as_array_mut);
            tissues.into_iter().for_each(|tissues| {
                let median = |tissue: &Value| tissue["median"].as_f64().unwrap_or_default();
                tissues.sort_by(|one, other| median(other).total_cmp(&median(one)));
            });
            answers
        },
        found: "/1/data",
        answer: &[
            text("gencode_id", "/0/data/0/gencodeId"),
            text("symbol", "/0/data/0/geneSymbol"),
            text("dataset", "/1/data/0/datasetId"),
            rows("tissues", "/1/data", &[text("tissue", "/tissueSiteDetailId"), number("median_tpm", "/median")], 60),
        ],
        keep: DAYS_7,
        notice: Some(NOT_MEDICAL),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "gene_diseases",
            title: "Gene diseases",
            summary: "Diseases that Open Targets associates with a human gene, strongest first, with scores by evidence",
            paths: &["/v1/tools/lookup/gene-diseases"],
            input: &[GENE, limit(25)],
            example: || json!({"gene": "BRCA1", "limit": 2}),
            ..LOOKUP
        },
        source: &OPEN_TARGETS,
        requests: &[
            Request {
                paths: &["/api/v4/{search}"],
                body: Some(|input| {
                    json!({
                        "query": "query($q: String!) { search(queryString: $q, entityNames: [\"target\"], page: {index: 0, size: 5}) { hits { id name } } }",
                        "variables": {"q": input.get("gene")},
                    })
                }),
                genuine: &["/data/search"],
                take: &[Take::Pick("ensembl", |answer, input| {
                    let wanted = input.get("gene").and_then(Value::as_str)?;
                    let hits = answer.pointer("/data/search/hits")?.as_array()?;
                    let is_it =
                        |hit: &&Value| hit["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
                    hits.iter().find(is_it)?["id"].as_str().map(str::to_owned)
                })],
                ..GET
            },
            Request {
                paths: &["/api/v4/graphql"],
                body: Some(|input| {
                    json!({
                        "query": "query($id: String!, $size: Int!) { target(ensemblId: $id) { id approvedSymbol approvedName associatedDiseases(page: {index: 0, size: $size}) { count rows { score datatypeScores { id score } disease { id name } } } } }",
                        "variables": {"id": input.get("ensembl"), "size": input.get("limit").cloned().unwrap_or(json!(10))},
                    })
                }),
                genuine: &["/data/target"],
                ..GET
            },
        ],
        derive: |input, _| {
            let gene = input.get("gene").and_then(Value::as_str).unwrap_or_default().to_uppercase();
            if gene.starts_with("ENSG") {
                input.insert("ensembl".to_owned(), json!(gene.split('.').next()));
            } else {
                input.insert("search".to_owned(), json!("graphql"));
            }
        },
        found: "/1/data/target",
        answer: &[
            text("ensembl_id", "/1/data/target/id"),
            text("symbol", "/1/data/target/approvedSymbol"),
            text("name", "/1/data/target/approvedName"),
            integer("total", "/1/data/target/associatedDiseases/count"),
            rows(
                "diseases",
                "/1/data/target/associatedDiseases/rows",
                &[
                    text("disease_id", "/disease/id"),
                    text("disease", "/disease/name"),
                    number("score", "/score"),
                    list("by_evidence", "/datatypeScores", &[text("evidence", "/id"), number("score", "/score")], 20),
                ],
                10,
            ),
            list("candidates", "/0/data/search/hits", &[text("ensembl_id", "/id"), text("symbol", "/name")], 5),
        ],
        keep: DAYS_7,
        notice: Some("A score is strength of evidence, neither cause nor risk. For research; not medical advice."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "gene_variants_find",
            title: "Gene variants",
            summary: "Variants in a gene on file in ClinVar, with their classifications and the total count",
            paths: &["/v1/tools/find/gene-variants"],
            input: &[
                Field::optional("gene_id", formed(&NUMBER_12), "The NCBI Gene ID"),
                Field::optional("symbol", formed(&TOKEN), "The official symbol"),
                Field::optional(
                    "classification",
                    Kind::Choice(&[
                        "pathogenic",
                        "likely_pathogenic",
                        "uncertain",
                        "likely_benign",
                        "benign",
                        "conflicting",
                    ]),
                    "Only of this classification",
                ),
                limit(20),
            ],
            check: |input, _| one_of(input, &["gene_id", "symbol"]),
            example: || json!({"gene_id": "7157", "classification": "pathogenic", "limit": 1}),
            ..LOOKUP
        },
        source: &NCBI,
        requests: &[
            Request {
                paths: &["/entrez/eutils/esummary.fcgi?db=gene&id={gene_id}&retmode=json"],
                genuine: &["/result"],
                take: &[Take::At("symbol", "/result/*/name")],
                ..GET
            },
            Request {
                paths: &["/entrez/eutils/esearch.fcgi"],
                query: &[
                    Pair::One("db", "clinvar"),
                    Pair::Joined(
                        "term",
                        " AND ",
                        &["{symbol}[gene]", "{property|phrase}[prop]", "\"single gene\"[prop]"],
                    ),
                    Pair::One("retmode", "json"),
                    Pair::One("retmax", "{limit=10}"),
                ],
                genuine: &["/esearchresult/idlist"],
                take: &[Take::At("ids", "/esearchresult/idlist")],
                ..GET
            },
            summary_of("clinvar"),
        ],
        derive: |input, _| {
            let property = input.get("classification").and_then(Value::as_str).map(|class| match class {
                "likely_pathogenic" => "clinsig likely path",
                "uncertain" => "clinsig vus",
                "likely_benign" => "clinsig likely benign",
                "benign" => "clinsig benign",
                "conflicting" => "clinsig has conflicts",
                _ => "clinsig pathogenic",
            });
            input.extend(property.map(|property| ("property".to_owned(), json!(property))));
        },
        reshape: summaries,
        found: "/rows",
        answer: &[integer("total", "/total"), rows("variants", "/rows", VARIANT, 10)],
        notice: Some(CLASSIFIED),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "variant_clinical_significance",
            title: "Variant clinical significance",
            summary: "What ClinVar says of one variant, by VCV accession or rsID: classifications, review, conditions",
            paths: &["/v1/tools/lookup/variant-clinical-significance"],
            input: &[
                Field::optional("vcv", formed(&VCV), "ClinVar's accession, such as VCV000017677"),
                Field::optional("rsid", formed(&RSID), "The dbSNP identifier"),
            ],
            check: |input, _| one_of(input, &["vcv", "rsid"]),
            example: || json!({"rsid": "rs80357906"}),
            ..LOOKUP
        },
        source: &NCBI,
        requests: &[by_rsid(), summary_of("clinvar")],
        derive: vcv_as_id,
        reshape: summaries,
        found: "/rows/0/accession",
        answer: &[list("variants", "/rows", VARIANT, 5)],
        notice: Some(CLASSIFIED),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "variant_resolve",
            title: "Variant resolve",
            summary: "Which variant ClinVar has under an HGVS expression or rsID: identity only",
            paths: &["/v1/tools/resolve/variant"],
            input: &[
                Field::optional("hgvs", words(5, 200), "Such as NM_007294.4:c.5266dup"),
                Field::optional("rsid", formed(&RSID), "The dbSNP identifier"),
            ],
            check: |input, _| one_of(input, &["hgvs", "rsid"]),
            example: || json!({"hgvs": "NM_007294.4:c.5266dup"}),
            ..LOOKUP
        },
        source: &NCBI,
        requests: &[by_rsid(), summary_of("clinvar")],
        derive: vcv_as_id,
        reshape: summaries,
        found: "/rows/0/accession",
        answer: &[list(
            "variants",
            "/rows",
            &[
                text("vcv", "/accession_version|/accession"),
                text("name", "/title"),
                text("kind", "/obj_type"),
                texts("genes", "/genes/*/symbol"),
                text("protein_change", "/protein_change"),
            ],
            5,
        )],
        notice: Some(NOT_MEDICAL),
        ..ROW
    },
];

const CLASSIFIED: &str =
    "Classifications are submitters' and expert panels' interpretations, for research; not medical advice.";

static VARIANT: &[Member] = &[
    text("vcv", "/accession_version|/accession"),
    text("name", "/title"),
    text("kind", "/obj_type"),
    texts("genes", "/genes/*/symbol"),
    object("germline", "/germline_classification", CLASSIFICATION),
    object("somatic", "/clinical_impact_classification", CLASSIFICATION),
    object("oncogenicity", "/oncogenicity_classification", CLASSIFICATION),
];

static CLASSIFICATION: &[Member] = &[
    text("classification", "/description"),
    text("review_status", "/review_status"),
    date("evaluated_on", "/last_evaluated"),
    texts("conditions", "/trait_set/*/trait_name"),
];

/// Document summaries of the records that an earlier request found.
const fn summary_of(db: &'static str) -> Request {
    let paths: &[&str] = match db.as_bytes()[0] {
        b'g' => &["/entrez/eutils/esummary.fcgi?db=gene&id={ids}&retmode=json"],
        b'p' => &["/entrez/eutils/esummary.fcgi?db=pubmed&id={ids}&retmode=json"],
        _ => &["/entrez/eutils/esummary.fcgi?db=clinvar&id={ids}&retmode=json"],
    };
    Request { paths, genuine: &["/result"], ..GET }
}

/// ClinVar's ids of an rsID or an HGVS expression.
const fn by_rsid() -> Request {
    Request {
        paths: &["/entrez/eutils/{search}"],
        query: &[
            Pair::One("db", "clinvar"),
            Pair::One("term", "{term}"),
            Pair::One("retmode", "json"),
            Pair::One("retmax", "5"),
        ],
        genuine: &["/esearchresult/idlist"],
        take: &[Take::At("ids", "/esearchresult/idlist")],
        ..GET
    }
}

/// A VCV accession contains the record's id; other identifiers are searched for.
fn vcv_as_id(input: &mut Map<String, Value>, _: base::clock::Timestamp) {
    let given = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(vcv) = given("vcv") {
        let digits = vcv.trim_start_matches("VCV").split('.').next().unwrap_or_default();
        let id = digits.trim_start_matches('0').to_owned();
        input.insert("ids".to_owned(), json!(if id.is_empty() { "0".to_owned() } else { id }));
        return;
    }
    let hgvs = given("hgvs").map(|hgvs| format!("\"{}\"[varname]", hgvs.replace(['"', '[', ']'], " ")));
    input.insert("term".to_owned(), json!(given("rsid").or(hgvs)));
    input.insert("search".to_owned(), json!("esearch.fcgi"));
}

/// The summaries as an array, in the order of their ids. NCBI returns an object with one member per id.
fn summaries(answers: Value, _: &Map<String, Value>) -> Value {
    let all = answers.as_array().map_or(&[] as &[Value], Vec::as_slice);
    let result = all.last().map(|answer| &answer["result"]).unwrap_or(&Value::Null);
    let ids = result["uids"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // For an unknown id, the summary has an `error` member.
    let rows: Vec<Value> = ids
        .filter_map(|id| result.get(id))
        .filter(|row| row.is_object() && row.get("error").is_none())
        .take(100)
        .cloned()
        .collect();
    let total = all.iter().rev().find_map(|answer| answer.pointer("/esearchresult/count").cloned());
    json!({"total": total.unwrap_or_else(|| json!(rows.len())), "rows": rows})
}

fn newest_papers(answer: &Value, input: &Map<String, Value>) -> Option<String> {
    let links = answer.pointer("/linksets/0/linksetdbs/0/links")?.as_array()?;
    let mut ids: Vec<u64> = links.iter().filter_map(|id| id.as_str()?.parse().ok()).collect();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    let limit = input.get("limit").and_then(Value::as_u64).unwrap_or(10);
    let ids: Vec<String> = ids.into_iter().take(limit.min(20) as usize).map(|id| id.to_string()).collect();
    (!ids.is_empty()).then(|| ids.join(","))
}

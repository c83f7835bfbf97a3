//! Compounds and proteins.

use base::input::{Field, FieldError, Format, Kind};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::row::*;

/// <https://pubchem.ncbi.nlm.nih.gov/docs/pug-rest> and `/docs/pug-view` (read Nov 2026): at most five requests a second.
static PUBCHEM: Source = Source {
    provider: "pubchem",
    origin: "https://pubchem.ncbi.nlm.nih.gov",
    name: "US National Center for Biotechnology Information, PubChem",
    url: "https://pubchem.ncbi.nlm.nih.gov/",
    licence: "US government work; see PubChem's sources",
    per_second: 2.0,
    failed: &[Failed::Unless("/Fault/Code", &["PUGREST.NotFound", "PUGVIEW.NotFound"])],
    ..SOURCE
};

/// <https://platform-docs.opentargets.org/data-access/graphql-api> (read Nov 2026).
pub static OPEN_TARGETS: Source = Source {
    provider: "opentargets",
    origin: "https://api.platform.opentargets.org",
    name: "Open Targets Platform",
    url: "https://platform.opentargets.org/",
    licence: "CC0 1.0",
    per_second: 2.0,
    ..SOURCE
};

/// <https://www.uniprot.org/help/api> (read Nov 2026).
static UNIPROT: Source = Source {
    provider: "uniprot",
    origin: "https://rest.uniprot.org",
    name: "UniProt Consortium, UniProtKB",
    url: "https://www.uniprot.org/",
    licence: "CC BY 4.0",
    per_second: 2.0,
    ..SOURCE
};

/// <https://interpro-documentation.readthedocs.io/en/latest/download.html#api> (read Nov 2026). 204 means "nothing found".
static INTERPRO: Source = Source {
    provider: "interpro",
    origin: "https://www.ebi.ac.uk",
    name: "EMBL-EBI, InterPro",
    url: "https://www.ebi.ac.uk/interpro/",
    licence: "CC0 1.0",
    per_second: 2.0,
    ..SOURCE
};

/// <https://search.rcsb.org/#search-api> (read Nov 2026). 204 means "nothing found".
static RCSB_SEARCH: Source = Source {
    provider: "rcsb_search",
    origin: "https://search.rcsb.org",
    name: "RCSB Protein Data Bank; EMBL-EBI, AlphaFold DB",
    url: "https://www.rcsb.org/",
    licence: "PDB: CC0 1.0; predicted models: CC BY 4.0",
    per_second: 2.0,
    failed: &[Failed::At("/errors"), Failed::At("/message")],
    ..SOURCE
};

/// <https://data.rcsb.org/#gql-api> (read Nov 2026).
static RCSB_DATA: Source = Source { provider: "rcsb", origin: "https://data.rcsb.org", ..RCSB_SEARCH };

/// <https://alphafold.ebi.ac.uk/api-docs> (read Nov 2026).
static ALPHAFOLD: Source =
    Source { provider: "alphafold", origin: "https://alphafold.ebi.ac.uk", failed: &[], ..RCSB_SEARCH };

static INCHIKEY: Format = Format {
    name: None,
    pattern: Some("^[A-Z]{14}-[A-Z]{10}-[A-Z]$"),
    matches: super::checks::is_inchikey,
    message: "must be 14 capitals, a hyphen, 10 capitals, a hyphen and one capital",
};
static CHEMBL: Format = Format {
    name: None,
    pattern: Some("^[Cc][Hh][Ee][Mm][Bb][Ll][1-9][0-9]{0,8}$"),
    matches: |text| {
        let digits = text.get(..6).filter(|head| head.eq_ignore_ascii_case("chembl")).map(|_| &text[6..]);
        digits.is_some_and(|digits| {
            (1..=9).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && !digits.starts_with('0')
        })
    },
    message: "must be CHEMBL and 1 to 9 digits",
};
static ACCESSION: Format = Format {
    name: None,
    pattern: Some("^[A-Za-z0-9]{6,10}(-[0-9]{1,3})?$"),
    matches: |text| {
        let (entry, isoform) = text.split_once('-').unwrap_or((text, "1"));
        matches!(entry.len(), 6 | 10)
            && entry.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && (1..=3).contains(&isoform.len())
            && isoform.bytes().all(|byte| byte.is_ascii_digit())
    },
    message: "must be a UniProt accession",
};

const CID: Field = Field::optional("cid", whole(1, 999_999_999), "PubChem's number of the compound");
const NAME: Field = Field::optional("name", words(2, 200), "A name, or a CAS number");
const INCHIKEY_FIELD: Field = Field::optional("inchikey", formed(&INCHIKEY), "The standard InChIKey");
const PROTEIN: Field = Field::required("accession", formed(&ACCESSION), "The UniProt accession, such as P04637");

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "compound_resolve",
            title: "Compound resolve",
            summary: "PubChem compounds behind a name, CAS number, InChIKey or SMILES: identifiers and formulas",
            paths: &["/v1/tools/resolve/compound"],
            input: &[
                NAME,
                INCHIKEY_FIELD,
                Field::optional("smiles", words(1, 500), "A SMILES without / and \\"),
                limit(10),
            ],
            check: |input, _| {
                let mut errors = one_of(input, &["name", "inchikey", "smiles"]);
                if input.get("smiles").and_then(Value::as_str).is_some_and(|smiles| smiles.contains(['/', '\\'])) {
                    errors.push(FieldError::new("smiles", "must be without / and \\"));
                }
                errors
            },
            example: || json!({"name": "aspirin"}),
            ..LOOKUP
        },
        source: &PUBCHEM,
        requests: &[Request {
            paths: &[
                "/rest/pug/compound/name/{name}/property/Title,IUPACName,MolecularFormula,InChIKey,ConnectivitySMILES/JSON",
                "/rest/pug/compound/inchikey/{inchikey}/property/Title,IUPACName,MolecularFormula,InChIKey,ConnectivitySMILES/JSON",
                "/rest/pug/compound/smiles/{smiles}/property/Title,IUPACName,MolecularFormula,InChIKey,ConnectivitySMILES/JSON",
            ],
            absent: &[404],
            genuine: &["/PropertyTable/Properties"],
            ..GET
        }],
        reshape: |mut answer, _| {
            let count = answer.pointer("/PropertyTable/Properties").and_then(Value::as_array).map_or(0, Vec::len);
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("ambiguous".to_owned(), json!(count > 1));
            }
            answer
        },
        found: "/PropertyTable/Properties/0/CID",
        answer: &[
            flag("ambiguous", "/ambiguous"),
            rows(
                "matches",
                "/PropertyTable/Properties",
                &[
                    integer("cid", "/CID"),
                    text("title", "/Title"),
                    text("iupac_name", "/IUPACName"),
                    text("formula", "/MolecularFormula"),
                    text("inchikey", "/InChIKey"),
                    text("smiles", "/ConnectivitySMILES"),
                ],
                5,
            ),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "compound_properties",
            title: "Compound properties",
            summary: "Computed descriptors of a compound: weight, exact mass, XLogP, polar area, bonds, charge",
            paths: &["/v1/tools/lookup/compound-properties"],
            input: &[CID, INCHIKEY_FIELD],
            check: |input, _| one_of(input, &["cid", "inchikey"]),
            example: || json!({"cid": 2244}),
            ..LOOKUP
        },
        source: &PUBCHEM,
        requests: &[Request {
            paths: &[
                "/rest/pug/compound/cid/{cid}/property/Title,IUPACName,MolecularFormula,InChIKey,MolecularWeight,ExactMass,XLogP,TPSA,HBondDonorCount,HBondAcceptorCount,RotatableBondCount,HeavyAtomCount,Charge,Complexity/JSON",
                "/rest/pug/compound/inchikey/{inchikey}/property/Title,IUPACName,MolecularFormula,InChIKey,MolecularWeight,ExactMass,XLogP,TPSA,HBondDonorCount,HBondAcceptorCount,RotatableBondCount,HeavyAtomCount,Charge,Complexity/JSON",
            ],
            absent: &[404],
            genuine: &["/PropertyTable/Properties"],
            ..GET
        }],
        found: "/PropertyTable/Properties",
        answer: &[object(
            "compound",
            "/PropertyTable/Properties/0",
            &[
                integer("cid", "/CID"),
                text("title", "/Title"),
                text("iupac_name", "/IUPACName"),
                text("formula", "/MolecularFormula"),
                text("inchikey", "/InChIKey"),
                number("molecular_weight", "/MolecularWeight").about("g/mol"),
                number("exact_mass", "/ExactMass").about("Da"),
                number("xlogp", "/XLogP"),
                number("polar_surface_area", "/TPSA").about("Square angstroms"),
                integer("hydrogen_bond_donors", "/HBondDonorCount"),
                integer("hydrogen_bond_acceptors", "/HBondAcceptorCount"),
                integer("rotatable_bonds", "/RotatableBondCount"),
                integer("heavy_atoms", "/HeavyAtomCount"),
                integer("charge", "/Charge"),
                number("complexity", "/Complexity"),
            ],
        )],
        keep: DAYS_7,
        notice: Some("Computed from the structure, not measured."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "compound_hazards",
            title: "Compound hazards",
            summary: "GHS hazard classifications of a compound, by source: pictograms, signal word, statements",
            paths: &["/v1/tools/lookup/compound-hazards"],
            input: &[CID, NAME],
            check: |input, _| one_of(input, &["cid", "name"]),
            example: || json!({"name": "50-00-0"}),
            ..LOOKUP
        },
        source: &PUBCHEM,
        requests: &[
            Request {
                paths: &["/rest/pug/compound/name/{name}/cids/JSON"],
                absent: &[404],
                genuine: &["/IdentifierList/CID"],
                take: &[Take::At("cid", "/IdentifierList/CID/0")],
                ..GET
            },
            Request {
                paths: &["/rest/pug_view/data/compound/{cid}/JSON"],
                query: &[Pair::One("heading", "GHS Classification")],
                absent: &[404],
                genuine: &["/Record"],
                ..GET
            },
        ],
        reshape: hazards,
        found: "/classifications",
        answer: &[
            integer("cid", "/cid"),
            text("compound", "/title"),
            list(
                "classifications",
                "/classifications",
                &[
                    text("source", "/source"),
                    text("signal", "/signal"),
                    texts("pictograms", "/pictograms"),
                    texts("hazard_statements", "/hazards"),
                    texts("precautionary_statements", "/precautions"),
                ],
                10,
            ),
        ],
        keep: DAYS_7,
        notice: Some("Not a safety data sheet; sources differ."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "compound_targets",
            title: "Compound targets",
            summary: "Protein targets and mechanisms of action of a drug or clinical candidate, by ChEMBL id or name",
            paths: &["/v1/tools/lookup/compound-targets"],
            input: &[
                Field::optional("chembl_id", formed(&CHEMBL), "The ChEMBL id, such as CHEMBL1201580"),
                Field::optional("name", words(2, 100), "The name; the first hit is taken"),
            ],
            check: |input, _| one_of(input, &["chembl_id", "name"]),
            example: || json!({"chembl_id": "CHEMBL1201580"}),
            ..LOOKUP
        },
        source: &OPEN_TARGETS,
        requests: &[
            Request {
                paths: &["/api/v4/{search}"],
                body: Some(|input| {
                    json!({
                        "query": "query($q: String!) { search(queryString: $q, entityNames: [\"drug\"], page: {index: 0, size: 3}) { hits { id name } } }",
                        "variables": {"q": input.get("name")},
                    })
                }),
                genuine: &["/data/search"],
                take: &[Take::At("drug", "/data/search/hits/0/id")],
                ..GET
            },
            Request {
                paths: &["/api/v4/graphql"],
                body: Some(|input| {
                    json!({
                        "query": "query($id: String!) { drug(chemblId: $id) { id name mechanismsOfAction { rows { mechanismOfAction actionType targets { id approvedSymbol approvedName } references { source urls } } } } }",
                        "variables": {"id": input.get("drug")},
                    })
                }),
                genuine: &["/data/drug"],
                ..GET
            },
        ],
        derive: |input, _| {
            let id = input.get("chembl_id").and_then(Value::as_str).map(|id| json!(id.to_uppercase()));
            match id {
                Some(id) => input.insert("drug".to_owned(), id),
                None => input.insert("search".to_owned(), json!("graphql")),
            };
        },
        found: "/1/data/drug",
        answer: &[
            text("chembl_id", "/1/data/drug/id"),
            text("name", "/1/data/drug/name"),
            list(
                "mechanisms",
                "/1/data/drug/mechanismsOfAction/rows",
                &[
                    text("mechanism", "/mechanismOfAction"),
                    text("action", "/actionType"),
                    list(
                        "targets",
                        "/targets",
                        &[text("ensembl_id", "/id"), text("symbol", "/approvedSymbol"), text("name", "/approvedName")],
                        20,
                    ),
                    texts("references", "/references/*/urls"),
                ],
                20,
            ),
            list("candidates", "/0/data/search/hits", &[text("chembl_id", "/id"), text("name", "/name")], 3),
        ],
        keep: DAYS_7,
        notice: Some(NOT_MEDICAL),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "protein_resolve",
            title: "Protein resolve",
            summary: "UniProt entries behind a gene symbol or protein name, reviewed human ones where not said otherwise",
            paths: &["/v1/tools/resolve/protein"],
            input: &[
                Field::required("query", words(1, 60), "A gene symbol or a protein's name"),
                Field::optional("taxon_id", whole(1, 999_999_999), "The organism; 9606 (human) where left out"),
                limit(10),
            ],
            example: || json!({"query": "TP53"}),
            ..LOOKUP
        },
        source: &UNIPROT,
        requests: &[Request {
            paths: &["/uniprotkb/search"],
            query: &[
                Pair::One(
                    "query",
                    "(gene:{query|phrase} OR protein_name:{query|phrase}) AND organism_id:{taxon_id=9606} AND reviewed:true",
                ),
                Pair::One("fields", "accession,id,protein_name,gene_names,organism_name,annotation_score"),
                Pair::One("format", "json"),
                Pair::One("size", "{limit=5}"),
            ],
            genuine: &["/results"],
            ..GET
        }],
        found: "/results",
        answer: &[rows("matches", "/results", ENTRY, 5)],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "protein_function",
            title: "Protein function",
            summary: "What UniProt says of a protein: function, locations, activities, keywords, gene, organism",
            paths: &["/v1/tools/lookup/protein-function"],
            input: &[PROTEIN],
            example: || json!({"accession": "P29358"}),
            ..LOOKUP
        },
        source: &UNIPROT,
        requests: &[Request {
            paths: &["/uniprotkb/{accession|upper}.json"],
            absent: &[400, 404],
            genuine: &["/primaryAccession"],
            ..GET
        }],
        reshape: comments,
        found: "/proteinDescription",
        answer: &[
            object("protein", "", ENTRY),
            texts("functions", "/by_kind/FUNCTION/*/texts/*/value"),
            texts("locations", "/by_kind/SUBCELLULAR LOCATION/*/subcellularLocations/*/location/value"),
            texts("activities", "/by_kind/CATALYTIC ACTIVITY/*/reaction/name"),
            texts("ec_numbers", "/proteinDescription/recommendedName/ecNumbers/*/value"),
            texts("keywords", "/keywords/*/name"),
            integer("length", "/sequence/length"),
            date("updated_on", "/entryAudit/lastAnnotationUpdateDate"),
            text("inactive_reason", "/inactiveReason/inactiveReasonType"),
            texts("replaced_by", "/inactiveReason/mergeDemergeTo"),
        ],
        keep: DAYS_7,
        notice: Some(NOT_MEDICAL),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "protein_sequence",
            title: "Protein sequence",
            summary: "The reference sequence of a protein in UniProt: letters, length, weight, checksums",
            paths: &["/v1/tools/lookup/protein-sequence"],
            input: &[PROTEIN],
            example: || json!({"accession": "P00001"}),
            ..LOOKUP
        },
        source: &UNIPROT,
        requests: &[Request {
            paths: &["/uniprotkb/{accession|upper}.json"],
            absent: &[400, 404],
            genuine: &["/primaryAccession"],
            ..GET
        }],
        found: "/sequence/value",
        answer: &[
            object("protein", "", ENTRY),
            made("sequence", "/sequence/value", As::Text(40_000)),
            integer("length", "/sequence/length"),
            integer("molecular_weight", "/sequence/molWeight").about("Da"),
            text("crc64", "/sequence/crc64"),
            text("md5", "/sequence/md5"),
            integer("version", "/entryAudit/sequenceVersion"),
            date("updated_on", "/entryAudit/lastSequenceUpdateDate"),
            text("inactive_reason", "/inactiveReason/inactiveReasonType"),
            texts("replaced_by", "/inactiveReason/mergeDemergeTo"),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "protein_domains",
            title: "Protein domains",
            summary: "InterPro entries on a protein: families, domains and sites, with their locations",
            paths: &["/v1/tools/lookup/protein-domains"],
            input: &[PROTEIN],
            example: || json!({"accession": "P04637"}),
            ..LOOKUP
        },
        source: &INTERPRO,
        requests: &[Request {
            paths: &["/interpro/api/entry/interpro/protein/uniprot/{accession|upper}"],
            query: &[Pair::One("page_size", "200")],
            absent: &[204, 404],
            genuine: &["/results"],
            ..GET
        }],
        found: "/results",
        answer: &[
            integer("total", "/count"),
            integer("protein_length", "/results/0/proteins/0/protein_length"),
            list(
                "entries",
                "/results",
                &[
                    text("accession", "/metadata/accession"),
                    text("name", "/metadata/name"),
                    text("kind", "/metadata/type"),
                    list(
                        "locations",
                        "/proteins/0/entry_protein_locations/*/fragments",
                        &[integer("start", "/start"), integer("end", "/end")],
                        50,
                    ),
                ],
                100,
            ),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "protein_structure",
            title: "Protein structure",
            summary: "Structures of a protein: experimental ones of the Protein Data Bank, or the predicted model",
            paths: &["/v1/tools/lookup/protein-structure"],
            input: &[
                PROTEIN,
                Field::required("coverage", Kind::Choice(&["experimental", "predicted"]), "Which kind"),
                limit(25),
            ],
            example: || json!({"accession": "P04637", "coverage": "experimental", "limit": 2}),
            ..LOOKUP
        },
        source: &RCSB_SEARCH,
        requests: &[
            Request {
                paths: &["/rcsbsearch/v2/{experimental}"],
                body: Some(|input| {
                    let attribute =
                        "rcsb_polymer_entity_container_identifiers.reference_sequence_identifiers.database_accession";
                    json!({
                        "query": {"type": "terminal", "service": "text", "parameters": {
                            "attribute": attribute, "operator": "in", "value": [input.get("accession")]}},
                        "return_type": "entry",
                        "request_options": {
                            "paginate": {"start": 0, "rows": input.get("limit").cloned().unwrap_or(json!(10))},
                            "sort": [{"sort_by": "rcsb_accession_info.initial_release_date", "direction": "desc"}]},
                    })
                }),
                absent: &[204],
                genuine: &["/result_set"],
                take: &[Take::At("entries", "/result_set/*/identifier")],
                ..GET
            },
            Request {
                paths: &["/{experimental_data}"],
                body: Some(|input| {
                    let ids: Vec<&str> =
                        input.get("entries").and_then(Value::as_str).unwrap_or_default().split(',').collect();
                    json!({
                        "query": "query($ids: [String!]!) { entries(entry_ids: $ids) { rcsb_id struct { title } exptl { method } rcsb_entry_info { resolution_combined } rcsb_accession_info { initial_release_date } } }",
                        "variables": {"ids": ids},
                    })
                }),
                genuine: &["/data/entries"],
                source: Some(&RCSB_DATA),
                ..GET
            },
            Request {
                paths: &["/api/prediction/{predicted}"],
                absent: &[400, 404],
                genuine: &[""],
                source: Some(&ALPHAFOLD),
                ..GET
            },
        ],
        derive: |input, _| {
            if input.get("coverage").and_then(Value::as_str) == Some("predicted") {
                let accession = input.get("accession").cloned().unwrap_or_default();
                input.insert("predicted".to_owned(), accession);
                // The request to the data bank is skipped. Without this value the lookup would stop here, because `entries`
                // would be missing.
                input.insert("entries".to_owned(), json!("none"));
            } else {
                input.insert("experimental".to_owned(), json!("query"));
                input.insert("experimental_data".to_owned(), json!("graphql"));
            }
        },
        reshape: |answers, _| {
            json!({
                "total": answers.pointer("/0/total_count"),
                "experimental": answers.pointer("/1/data/entries"),
                "predicted": answers.pointer("/2/0"),
                "any": answers.pointer("/2/0").or(answers.pointer("/1/data/entries")),
            })
        },
        found: "/any",
        answer: &[
            integer("total", "/total"),
            rows(
                "experimental",
                "/experimental",
                &[
                    text("pdb_id", "/rcsb_id"),
                    text("title", "/struct/title"),
                    texts("methods", "/exptl/*/method"),
                    number("resolution", "/rcsb_entry_info/resolution_combined/0").about("Angstroms"),
                    date("released_on", "/rcsb_accession_info/initial_release_date"),
                ],
                10,
            ),
            object(
                "predicted",
                "/predicted",
                &[
                    // Members were renamed in October 2025; the older names were dropped in June 2026.
                    text("entry_id", "/modelEntityId|/entryId"),
                    integer("version", "/latestVersion"),
                    date("created_on", "/modelCreatedDate"),
                    integer("first_residue", "/sequenceStart|/uniprotStart"),
                    integer("last_residue", "/sequenceEnd|/uniprotEnd"),
                    number("mean_confidence", "/globalMetricValue"),
                    link("structure_url", "/cifUrl"),
                    link("error_image_url", "/paeImageUrl"),
                ],
            ),
        ],
        keep: DAYS_7,
        notice: Some("A predicted model is an estimate, not a measured structure."),
        ..ROW
    },
];

static ENTRY: &[Member] = &[
    text("accession", "/primaryAccession"),
    text("entry_name", "/uniProtkbId"),
    text(
        "name",
        "/proteinDescription/recommendedName/fullName/value|/proteinDescription/submissionNames/0/fullName/value",
    ),
    texts("genes", "/genes/*/geneName/value"),
    texts("synonyms", "/genes/*/synonyms/*/value"),
    text("organism", "/organism/scientificName"),
    integer("taxon_id", "/organism/taxonId"),
    number("annotation_score", "/annotationScore").about("1 to 5"),
];

/// Groups comments by kind, so that a pointer can select one kind.
fn comments(mut answer: Value, _: &Map<String, Value>) -> Value {
    let mut by_kind: Map<String, Value> = Map::new();
    for comment in answer["comments"].as_array().into_iter().flatten().take(500) {
        let kind = comment["commentType"].as_str().unwrap_or_default().to_owned();
        if let Value::Array(list) = by_kind.entry(kind).or_insert_with(|| json!([])) {
            list.push(comment.clone());
        }
    }
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("by_kind".to_owned(), Value::Object(by_kind));
    }
    answer
}

/// Flattens PUG View's tree of sections, by classifying source.
fn hazards(answers: Value, _: &Map<String, Value>) -> Value {
    let record = &answers[1]["Record"];
    let mut found: Vec<(u64, &str, Vec<String>)> = Vec::new();
    let mut sections: Vec<&Value> = record["Section"].as_array().into_iter().flatten().take(200).collect();
    while let Some(section) = sections.pop() {
        sections.extend(section["Section"].as_array().into_iter().flatten().take(200));
        for said in section["Information"].as_array().into_iter().flatten().take(500) {
            let texts = said["Value"]["StringWithMarkup"].as_array().into_iter().flatten().take(100);
            let texts = texts.flat_map(|text| match said["Name"].as_str() {
                // A pictogram is an image; its name is in the markup.
                Some("Pictogram(s)") => text["Markup"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|icon| icon["Extra"].as_str().map(str::to_owned))
                    .collect(),
                _ => text["String"].as_str().map(str::to_owned).into_iter().collect::<Vec<_>>(),
            });
            if let (Some(reference), Some(name)) = (said["ReferenceNumber"].as_u64(), said["Name"].as_str()) {
                found.push((reference, name, texts.collect()));
            }
        }
        if sections.len() > 1_000 {
            break;
        }
    }
    let mut references: Vec<u64> = found.iter().map(|(reference, ..)| *reference).collect();
    references.sort_unstable();
    references.dedup();
    let of = |reference: u64, name: &str| -> Vec<String> {
        let said = found.iter().filter(|(by, named, _)| *by == reference && *named == name);
        said.flat_map(|(.., texts)| texts.clone()).collect()
    };
    let name_of = |reference: u64| {
        let sources = record["Reference"].as_array().into_iter().flatten();
        let mut named = sources.filter(|source| source["ReferenceNumber"].as_u64() == Some(reference));
        named.next().map(|source| source["SourceName"].clone()).unwrap_or_default()
    };
    let classifications: Vec<Value> = references
        .into_iter()
        .map(|reference| {
            json!({
                "source": name_of(reference), "signal": of(reference, "Signal").first(),
                "pictograms": of(reference, "Pictogram(s)"), "hazards": of(reference, "GHS Hazard Statements"),
                "precautions": of(reference, "Precautionary Statement Codes"),
            })
        })
        .filter(|class| class["hazards"].as_array().is_some_and(|hazards| !hazards.is_empty()))
        .collect();
    json!({"cid": record["RecordNumber"], "title": record["RecordTitle"], "classifications": classifications})
}

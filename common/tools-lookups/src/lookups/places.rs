//! Places: addresses, weather, water, fire and ground.

use base::input::{Field, Format, Kind, Range};
use serde_json::{Value, json};
use tools::spec::ToolSpec;

use super::engine::days_before;
use super::row::*;

/// <https://geocoding.geo.census.gov/geocoder/Geocoding_Services_API.html> (read Nov 2026).
static CENSUS: Source = Source {
    provider: "census",
    origin: "https://geocoding.geo.census.gov",
    name: "US Census Bureau, geocoder",
    url: "https://geocoding.geo.census.gov/geocoder/",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://earthquake.usgs.gov/fdsnws/event/1/> (read Nov 2026).
static USGS_QUAKES: Source = Source {
    provider: "usgs",
    origin: "https://earthquake.usgs.gov",
    name: "US Geological Survey, ANSS earthquake catalog",
    url: "https://earthquake.usgs.gov/earthquakes/search/",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://epqs.nationalmap.gov/v1/docs> (read Nov 2026).
static USGS_ELEVATION: Source = Source {
    provider: "usgs_elevation",
    origin: "https://epqs.nationalmap.gov",
    name: "US Geological Survey, 3D Elevation Program",
    url: "https://apps.nationalmap.gov/epqs/",
    licence: US_PUBLIC,
    ..SOURCE
};

/// <https://www.weather.gov/documentation/services-web-api> (read Nov 2026): requires a User-Agent that names the client.
static NWS: Source = Source {
    provider: "nws",
    origin: "https://api.weather.gov",
    name: "US National Weather Service",
    url: "https://www.weather.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://www.fema.gov/about/openfema/api> (read Nov 2026).
static OPENFEMA: Source = Source {
    provider: "openfema",
    origin: "https://www.fema.gov",
    name: "US Federal Emergency Management Agency, OpenFEMA (FEMA does not endorse this use)",
    url: "https://www.fema.gov/openfema-data-page/disaster-declarations-summaries-v2",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

/// <https://hazards.fema.gov/arcgis/rest/services/public/NFHL/MapServer/28> (layer of flood hazard zones, read Nov 2026).
static NFHL: Source = Source {
    provider: "nfhl",
    origin: "https://hazards.fema.gov",
    name: "US Federal Emergency Management Agency, National Flood Hazard Layer",
    url: "https://msc.fema.gov/nfhl",
    licence: US_PUBLIC,
    ..SOURCE
};

/// <https://data-nifc.opendata.arcgis.com/datasets/nifc::wfigs-current-interagency-fire-perimeters/> (read Nov 2026).
static NIFC: Source = Source {
    provider: "nifc",
    origin: "https://services3.arcgis.com",
    name: "US National Interagency Fire Center, current perimeters (WFIGS)",
    url: "https://data-nifc.opendata.arcgis.com/",
    licence: US_PUBLIC,
    ..SOURCE
};

/// <https://api.tidesandcurrents.noaa.gov/api/prod/> (read Nov 2026).
static TIDES: Source = Source {
    provider: "noaa_tides",
    origin: "https://api.tidesandcurrents.noaa.gov",
    name: "US National Oceanic and Atmospheric Administration, Tides & Currents",
    url: "https://tidesandcurrents.noaa.gov/",
    licence: US_PUBLIC,
    per_second: 2.0,
    ..SOURCE
};

const fn radius(most: f64) -> Field {
    Field::optional(
        "radius_km",
        Kind::Number(Range { above: Some(0.0), min: None, max: Some(most) }),
        "The distance from the point",
    )
}

static COUNTY: Format = Format {
    name: None,
    pattern: Some("^[A-Za-z .'-]{2,40}$"),
    matches: |text| {
        (2..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphabetic() || b" .'-".contains(&byte))
    },
    message: "must be 2 to 40 letters, spaces, periods, apostrophes and hyphens",
};
static STATION: Format = Format {
    name: None,
    pattern: Some("^[0-9]{7}$"),
    matches: |text| text.len() == 7 && text.bytes().all(|byte| byte.is_ascii_digit()),
    message: "must be seven digits",
};

pub static ROWS: &[Lookup] = &[
    Lookup {
        spec: ToolSpec {
            name: "place_resolve",
            title: "Place resolve",
            summary: "A US street address to coordinates, state, county, census tract and block",
            paths: &["/v1/tools/resolve/place", "/v1/tools/lookup/place-resolve"],
            input: &[Field::required(
                "address",
                words(5, 200),
                "The whole address on one line, with city and state or ZIP",
            )],
            example: || json!({"address": "1600 Pennsylvania Ave NW, Washington, DC"}),
            ..LOOKUP
        },
        source: &CENSUS,
        requests: &[Request {
            paths: &["/geocoder/geographies/onelineaddress"],
            query: &[
                Pair::One("address", "{address}"),
                Pair::One("benchmark", "Public_AR_Current"),
                Pair::One("vintage", "Current_Current"),
                Pair::One("layers", "all"),
                Pair::One("format", "json"),
            ],
            genuine: &["/result/addressMatches"],
            ..GET
        }],
        reshape: |mut answer, _| {
            let count = answer.pointer("/result/addressMatches").and_then(Value::as_array).map_or(0, Vec::len);
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("candidates".to_owned(), json!(count));
            }
            answer
        },
        found: "/result/addressMatches",
        answer: &[
            text("matched_address", "/result/addressMatches/0/matchedAddress"),
            number("latitude", "/result/addressMatches/0/coordinates/y"),
            number("longitude", "/result/addressMatches/0/coordinates/x"),
            text("state", "/result/addressMatches/0/addressComponents/state"),
            text("zip", "/result/addressMatches/0/addressComponents/zip"),
            text("state_code", "/result/addressMatches/0/geographies/States/0/STATE"),
            text("county", "/result/addressMatches/0/geographies/Counties/0/NAME"),
            text("county_code", "/result/addressMatches/0/geographies/Counties/0/GEOID"),
            text("tract", "/result/addressMatches/0/geographies/Census Tracts/0/GEOID"),
            text("block", "/result/addressMatches/0/geographies/2020 Census Blocks/0/GEOID"),
            text("incorporated_place", "/result/addressMatches/0/geographies/Incorporated Places/0/NAME"),
            integer("candidates", "/candidates"),
        ],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_earthquakes",
            title: "Earthquakes",
            summary: "Earthquakes near a point, newest first: magnitude, depth, felt reports; 30 days back where not said",
            paths: &["/v1/tools/lookup/place-earthquakes"],
            input: &[
                LATITUDE,
                LONGITUDE,
                radius(500.0),
                day("since", "Earliest day (UTC)"),
                day("until", "Latest day (UTC)"),
                Field::optional(
                    "min_magnitude",
                    Kind::Number(Range { above: None, min: Some(0.0), max: Some(10.0) }),
                    "2.5 where left out",
                ),
                limit(50),
            ],
            example: || json!({"latitude": 37.77, "longitude": -122.42, "since": "2026-07-01", "limit": 1}),
            ..LOOKUP
        },
        source: &USGS_QUAKES,
        requests: &[Request {
            paths: &["/fdsnws/event/1/query"],
            query: &[
                Pair::One("format", "geojson"),
                Pair::One("eventtype", "earthquake"),
                Pair::One("latitude", "{latitude}"),
                Pair::One("longitude", "{longitude}"),
                Pair::One("maxradiuskm", "{radius_km=100}"),
                Pair::One("starttime", "{from}"),
                // A date without a time would mean the start of that day.
                Pair::One("endtime", "{until}T23:59:59"),
                Pair::One("minmagnitude", "{min_magnitude=2.5}"),
                Pair::One("orderby", "time"),
                Pair::One("limit", "{limit=10}"),
            ],
            genuine: &["/features"],
            ..GET
        }],
        derive: |input, now| {
            let from = input.get("since").cloned().unwrap_or_else(|| json!(days_before(now, 30)));
            input.insert("from".to_owned(), from);
        },
        found: "/features",
        answer: &[rows(
            "earthquakes",
            "/features",
            &[
                text("id", "/id"),
                number("magnitude", "/properties/mag"),
                text("place", "/properties/place"),
                made("day", "/properties/time", As::DateMillis),
                integer("time_ms", "/properties/time").about("Milliseconds since 1970, UTC"),
                number("longitude", "/geometry/coordinates/0"),
                number("latitude", "/geometry/coordinates/1"),
                number("depth_km", "/geometry/coordinates/2"),
                integer("felt_reports", "/properties/felt"),
                flag("tsunami", "/properties/tsunami"),
                link("url", "/properties/url"),
            ],
            10,
        )],
        keep: MINUTES_5,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_elevation",
            title: "Elevation",
            summary: "The ground's elevation at a point of the US, in metres",
            paths: &["/v1/tools/lookup/place-elevation"],
            input: &[LATITUDE, LONGITUDE],
            example: || json!({"latitude": 39.7392, "longitude": -104.9903}),
            ..LOOKUP
        },
        source: &USGS_ELEVATION,
        requests: &[Request {
            paths: &["/v1/json"],
            query: &[
                Pair::One("x", "{longitude}"),
                Pair::One("y", "{latitude}"),
                Pair::One("units", "Meters"),
                Pair::One("wkid", "4326"),
            ],
            genuine: &["/value"],
            ..GET
        }],
        reshape: |mut answer, _| {
            // For points without data the service answers -1,000,000.
            let metres = answer["value"].as_f64().or_else(|| answer["value"].as_str()?.parse().ok());
            if metres.is_none_or(|metres| metres < -10_000.0)
                && let Some(answer) = answer.as_object_mut()
            {
                answer.insert("value".to_owned(), Value::Null);
            }
            answer
        },
        found: "/resolution",
        answer: &[number("elevation_m", "/value"), number("resolution_m", "/resolution")],
        keep: DAYS_7,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_weather_alerts",
            title: "Weather alerts",
            summary: "Watches, warnings and advisories in force at a point of the US, most severe first",
            paths: &["/v1/tools/lookup/place-weather-alerts"],
            input: &[LATITUDE, LONGITUDE],
            example: || json!({"latitude": 30.1487, "longitude": -94.0188}),
            ..LOOKUP
        },
        source: &NWS,
        requests: &[Request {
            paths: &["/alerts/active"],
            query: &[Pair::One("point", "{latitude|degrees},{longitude|degrees}")],
            genuine: &["/features"],
            ..GET
        }],
        reshape: |mut answer, _| {
            let severity = |alert: &Value| match alert.pointer("/properties/severity").and_then(Value::as_str) {
                Some("Extreme") => 0,
                Some("Severe") => 1,
                Some("Moderate") => 2,
                Some("Minor") => 3,
                _ => 4,
            };
            let count = answer.get_mut("features").and_then(Value::as_array_mut).map_or(0, |alerts| {
                alerts.sort_by_key(severity);
                alerts.len()
            });
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("total".to_owned(), json!(count));
            }
            answer
        },
        found: "/features",
        answer: &[
            integer("total", "/total"),
            list(
                "alerts",
                "/features/*/properties",
                &[
                    text("event", "/event"),
                    text("severity", "/severity"),
                    text("urgency", "/urgency"),
                    text("certainty", "/certainty"),
                    text("headline", "/headline"),
                    text("description", "/description"),
                    text("instruction", "/instruction"),
                    text("area", "/areaDesc"),
                    text("onset_at", "/onset"),
                    text("expires_at", "/expires"),
                    text("sender", "/senderName"),
                ],
                30,
            ),
        ],
        keep: MINUTES_5,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_weather_forecast",
            title: "Weather forecast",
            summary: "The US National Weather Service's forecast for a point, by half days",
            paths: &["/v1/tools/lookup/place-weather-forecast"],
            input: &[LATITUDE, LONGITUDE, limit(14)],
            example: || json!({"latitude": 39.7456, "longitude": -97.0892, "limit": 2}),
            ..LOOKUP
        },
        source: &NWS,
        requests: &[
            Request {
                paths: &["/points/{latitude|degrees},{longitude|degrees}"],
                absent: &[404],
                genuine: &["/properties/gridId"],
                take: &[
                    Take::At("office", "/properties/gridId"),
                    Take::At("grid_x", "/properties/gridX"),
                    Take::At("grid_y", "/properties/gridY"),
                ],
                ..GET
            },
            Request {
                paths: &["/gridpoints/{office}/{grid_x},{grid_y}/forecast"],
                absent: &[404],
                genuine: &["/properties/periods"],
                ..GET
            },
        ],
        found: "/1/properties/periods",
        answer: &[
            text("office", "/0/properties/gridId"),
            text("time_zone", "/0/properties/timeZone"),
            text("generated_at", "/1/properties/generatedAt"),
            rows(
                "periods",
                "/1/properties/periods",
                &[
                    text("name", "/name"),
                    text("starts_at", "/startTime"),
                    flag("daytime", "/isDaytime"),
                    number("temperature", "/temperature"),
                    text("unit", "/temperatureUnit"),
                    number("rain_percent", "/probabilityOfPrecipitation/value"),
                    text("wind", "/windSpeed"),
                    text("wind_direction", "/windDirection"),
                    text("forecast", "/detailedForecast"),
                ],
                14,
            ),
        ],
        keep: MINUTES_5,
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_disasters",
            title: "Disaster declarations",
            summary: "Federal disaster declarations that covered a US county or its whole state, newest first",
            paths: &["/v1/tools/lookup/place-disasters"],
            input: &[
                Field::required("state", STATE, "Postal code, such as TX"),
                Field::required("county", formed(&COUNTY), "Without the word County or Parish"),
                Field::optional("incident_type", formed(&COUNTY), "Such as Flood, Hurricane or Fire"),
                day("declared_after", "Declared on or after this day"),
                day("declared_before", "Declared on or before this day"),
                limit(100),
            ],
            example: || {
                json!({"state": "TX", "county": "Harris", "incident_type": "Hurricane", "declared_after": "2015-01-01",
                    "limit": 1})
            },
            ..LOOKUP
        },
        source: &OPENFEMA,
        requests: &[Request {
            paths: &["/api/open/v2/DisasterDeclarationsSummaries"],
            query: &[
                Pair::Joined(
                    "$filter",
                    " and ",
                    &[
                        "state eq {state|soql}",
                        "(designatedArea eq 'Statewide' or startswith(designatedArea,{area|soql}))",
                        "incidentType eq {incident_type|soql}",
                        "declarationDate ge {declared_after|soql}",
                        "declarationDate le {declared_before|soql}",
                    ],
                ),
                Pair::One("$orderby", "declarationDate desc"),
                Pair::One("$count", "true"),
                Pair::One("$top", "{limit=25}"),
            ],
            genuine: &["/DisasterDeclarationsSummaries"],
            ..GET
        }],
        derive: |input, _| {
            let area = input.get("county").and_then(Value::as_str).map(|county| json!(format!("{} (", county.trim())));
            input.extend(area.map(|area| ("area".to_owned(), area)));
        },
        found: "/DisasterDeclarationsSummaries",
        answer: &[
            integer("total", "/metadata/count"),
            rows(
                "declarations",
                "/DisasterDeclarationsSummaries",
                &[
                    text("declaration", "/femaDeclarationString"),
                    integer("disaster_number", "/disasterNumber"),
                    text("title", "/declarationTitle"),
                    text("kind", "/declarationType"),
                    text("incident", "/incidentType"),
                    text("area", "/designatedArea"),
                    date("declared_on", "/declarationDate"),
                    date("began_on", "/incidentBeginDate"),
                    date("ended_on", "/incidentEndDate"),
                ],
                25,
            ),
        ],
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_flood_zone",
            title: "Flood zone",
            summary: "The US flood hazard zone at a point: zone, subtype, special hazard area, base flood elevation",
            paths: &["/v1/tools/lookup/place-flood-zone"],
            input: &[LATITUDE, LONGITUDE],
            example: || json!({"latitude": 29.7604, "longitude": -95.3698}),
            ..LOOKUP
        },
        source: &NFHL,
        requests: &[Request {
            paths: &["/arcgis/rest/services/public/NFHL/MapServer/28/query"],
            query: &[
                Pair::One("geometry", "{longitude},{latitude}"),
                Pair::One("geometryType", "esriGeometryPoint"),
                Pair::One("inSR", "4326"),
                Pair::One("spatialRel", "esriSpatialRelIntersects"),
                Pair::One("outFields", "FLD_ZONE,ZONE_SUBTY,SFHA_TF,STATIC_BFE,V_DATUM,DFIRM_ID"),
                Pair::One("returnGeometry", "false"),
                Pair::One("f", "json"),
            ],
            genuine: &["/features"],
            ..GET
        }],
        reshape: |mut answer, _| {
            let count = answer["features"].as_array().map_or(0, Vec::len);
            // -9999 means that no elevation is stated.
            let elevation = answer.pointer_mut("/features/0/attributes/STATIC_BFE");
            if let Some(elevation) =
                elevation.filter(|elevation| elevation.as_f64().is_some_and(|feet| feet < -9_000.0))
            {
                *elevation = Value::Null;
            }
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("overlapping".to_owned(), json!(count));
            }
            answer
        },
        found: "/features",
        answer: &[
            text("zone", "/features/0/attributes/FLD_ZONE"),
            text("subtype", "/features/0/attributes/ZONE_SUBTY"),
            flag("special_flood_hazard_area", "/features/0/attributes/SFHA_TF"),
            number("base_flood_elevation_ft", "/features/0/attributes/STATIC_BFE"),
            text("datum", "/features/0/attributes/V_DATUM"),
            text("map", "/features/0/attributes/DFIRM_ID"),
            integer("overlapping_zones", "/overlapping"),
        ],
        keep: DAYS_7,
        notice: Some("A screening aid, not a flood determination: never base lending or insurance decisions on it."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_wildfires",
            title: "Wildfires",
            summary: "Fires with a current perimeter near a point of the US, largest first: acres, containment, discovery",
            paths: &["/v1/tools/lookup/place-wildfires"],
            input: &[LATITUDE, LONGITUDE, radius(200.0), limit(25)],
            example: || json!({"latitude": 44.7, "longitude": -120, "radius_km": 100, "limit": 1}),
            ..LOOKUP
        },
        source: &NIFC,
        requests: &[Request {
            paths: &[
                "/T4QMspbfLg3qTGWY/arcgis/rest/services/WFIGS_Interagency_Perimeters_Current/FeatureServer/0/query",
            ],
            query: &[
                Pair::One("where", "1=1"),
                Pair::One("geometry", "{longitude},{latitude}"),
                Pair::One("geometryType", "esriGeometryPoint"),
                Pair::One("inSR", "4326"),
                Pair::One("spatialRel", "esriSpatialRelIntersects"),
                Pair::One("distance", "{radius_m=50000}"),
                Pair::One("units", "esriSRUnit_Meter"),
                Pair::One(
                    "outFields",
                    "poly_IncidentName,poly_GISAcres,attr_PercentContained,attr_FireDiscoveryDateTime,attr_POOState,attr_POOCounty",
                ),
                Pair::One("orderByFields", "poly_GISAcres DESC"),
                Pair::One("resultRecordCount", "{limit=10}"),
                Pair::One("returnGeometry", "false"),
                Pair::One("f", "json"),
            ],
            genuine: &["/features"],
            ..GET
        }],
        derive: |input, _| {
            let metres = input.get("radius_km").and_then(Value::as_f64).map(|km| json!((km * 1000.0).round() as i64));
            input.extend(metres.map(|metres| ("radius_m".to_owned(), metres)));
        },
        found: "/features",
        answer: &[
            rows(
                "fires",
                "/features/*/attributes",
                &[
                    text("name", "/poly_IncidentName"),
                    number("acres", "/poly_GISAcres"),
                    number("percent_contained", "/attr_PercentContained"),
                    made("discovered_on", "/attr_FireDiscoveryDateTime", As::DateMillis),
                    text("state", "/attr_POOState"),
                    text("county", "/attr_POOCounty"),
                ],
                10,
            ),
            flag("more", "/exceededTransferLimit"),
        ],
        keep: MINUTES_5,
        notice: Some("No published perimeter does not mean that no fire is near."),
        ..ROW
    },
    Lookup {
        spec: ToolSpec {
            name: "place_tides",
            title: "Tides",
            summary: "Predicted high and low water of two days at a US tide station, in metres above MLLW, UTC",
            paths: &["/v1/tools/lookup/place-tides"],
            input: &[
                Field::required("station", formed(&STATION), "NOAA's station, such as 9414290"),
                day("day", "The first day; today where left out"),
            ],
            example: || json!({"station": "9414290", "day": "2026-11-21"}),
            ..LOOKUP
        },
        source: &TIDES,
        requests: &[Request {
            paths: &["/api/prod/datagetter"],
            query: &[
                Pair::One("product", "predictions"),
                Pair::One("station", "{station}"),
                Pair::One("begin_date", "{begin|digits}"),
                Pair::One("range", "48"),
                Pair::One("datum", "MLLW"),
                Pair::One("interval", "hilo"),
                Pair::One("units", "metric"),
                Pair::One("time_zone", "gmt"),
                Pair::One("format", "json"),
            ],
            // The service sends the same error for "no predictions at this station" and for a failure, so both count as
            // failures.
            genuine: &["/predictions"],
            ..GET
        }],
        derive: |input, now| {
            let begin = input.get("day").cloned().unwrap_or_else(|| json!(days_before(now, 0)));
            input.insert("begin".to_owned(), begin);
        },
        found: "/predictions",
        answer: &[list(
            "tides",
            "/predictions",
            &[text("time", "/t"), number("height_m", "/v"), text("kind", "/type").about("H is high, L is low")],
            20,
        )],
        notice: Some("Predictions; not for navigation."),
        ..ROW
    },
];

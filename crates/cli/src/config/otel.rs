//! Where traces go: the standard variables of OpenTelemetry, which every other service of a
//! deployment reads, too. Without an endpoint nothing is sent.

use super::layers::Environment;
use mainspring_executor::Otlp;
use mainspring_kernel::executor::check_url;

/// Most headers that are sent along.
const HEADERS_MAX: usize = 16;

/// What the environment says; nothing if traces are not wanted.
///
/// # Errors
/// What is wrong, with the name of the variable.
pub(super) fn read(environment: Environment<'_>) -> Result<Option<Otlp>, String> {
    let text = |name: &str| environment(name).filter(|text| !text.trim().is_empty());
    let is_off = text("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
        || text("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
    let url =
        match (text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), text("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            _ if is_off => return Ok(None),
            (Some(url), _) => url,
            (None, Some(base)) => format!("{}/v1/traces", base.trim_end_matches('/')),
            (None, None) => return Ok(None),
        };
    check_url("OTEL_EXPORTER_OTLP_ENDPOINT", &url).map_err(|bad| bad.to_string())?;
    let protocol =
        text("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| text("OTEL_EXPORTER_OTLP_PROTOCOL"));
    if let Some(protocol) = protocol.filter(|protocol| protocol != "http/json") {
        return Err(format!("OTEL_EXPORTER_OTLP_PROTOCOL is {protocol:?}, must be http/json"));
    }
    let headers = text("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
        .or_else(|| text("OTEL_EXPORTER_OTLP_HEADERS"))
        .map_or(Ok(Vec::new()), |text| headers(&text))?;
    let service = text("OTEL_SERVICE_NAME").unwrap_or_else(|| "mainspring".to_owned());
    Ok(Some(Otlp { url, headers, service }))
}

/// `name=value,name=value`. A header that is ours cannot be set.
fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    const OURS: [&str; 4] = ["host", "connection", "content-type", "content-length"];
    let mut headers = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_value = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let is_one = !name.is_empty() && name.bytes().all(is_name) && is_value;
        if !is_one || OURS.contains(&&*name) || headers.len() >= HEADERS_MAX {
            // Values may be secrets.
            return Err("OTEL_EXPORTER_OTLP_HEADERS must be up to 16 name=value pairs, and none \
                        that every request has"
                .to_owned());
        }
        headers.push((name, value.to_owned()));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&str, &str)]) -> Result<Option<Otlp>, String> {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        read(&move |name: &str| {
            let found = pairs.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn the_standard_variables_say_where_traces_go() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        assert_eq!(said(&[]), Ok(None));
        let told = said(&[base, ("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=a=b, other=c")]).unwrap();
        let told = told.unwrap();
        assert_eq!((&*told.url, &*told.service), ("http://127.0.0.1:4318/v1/traces", "mainspring"));
        assert_eq!(told.headers[0], ("x-key".to_owned(), "a=b".to_owned()));
        let exact = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://a.example/x");
        let told = said(&[base, exact, ("OTEL_SERVICE_NAME", "jobs")]).unwrap().unwrap();
        assert_eq!((&*told.url, &*told.service), ("https://a.example/x", "jobs"));
        assert_eq!(said(&[base, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        assert_eq!(said(&[base, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
        for bad in [
            vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere")],
            vec![base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            vec![base, ("OTEL_EXPORTER_OTLP_HEADERS", "host=x")],
            vec![base, ("OTEL_EXPORTER_OTLP_HEADERS", "a b=x")],
        ] {
            assert!(said(&bad).is_err(), "{bad:?}");
        }
        let secret = said(&[base, ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hush")]).unwrap_err();
        assert!(!secret.contains("hush"));
    }
}

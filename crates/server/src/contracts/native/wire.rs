//! Requests of the hot paths as they are read: borrowed twins of the `api` types, so that nothing
//! is copied before the kernel's own types are built. A test holds the two together.

use crate::json::{self, Bounded};
use crate::refusal::{self, Refusal};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Text that is borrowed where it has no escapes; inside an `Option`, a plain `Cow` never is.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Submit<'a> {
    #[serde(borrow)]
    pub(super) job_type: Text<'a>,
    #[serde(borrow)]
    pub(super) payload: &'a RawValue,
    #[serde(borrow)]
    pub(super) run_at: Option<Text<'a>>,
    pub(super) delay_ms: Option<u64>,
    pub(super) priority: Option<u8>,
    #[serde(borrow)]
    pub(super) queue: Option<Text<'a>>,
    pub(super) timeout_ms: Option<u32>,
    pub(super) max_retries: Option<u16>,
    #[serde(borrow)]
    pub(super) idempotency_key: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) idempotency_scope: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) trace_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) traceparent: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parent_id: Option<Text<'a>>,
    pub(super) labels: Option<Labels>,
    #[serde(borrow)]
    pub(super) subject: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) expires_at: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) deadline_at: Option<Text<'a>>,
    pub(super) queue_timeout_ms: Option<u32>,
    #[serde(borrow, default)]
    pub(super) after: Vec<Text<'a>>,
    #[serde(borrow)]
    pub(super) after_condition: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) concurrency_key: Option<Text<'a>>,
}

/// Labels in the order given.
#[derive(Debug)]
pub(super) struct Labels(pub(super) Vec<(Box<str>, Box<str>)>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object whose values are strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    // The kernel has the real bound; this one only keeps the memory small.
                    if labels.len() > mainspring_kernel::limits::LABELS_MAX {
                        return Err(de::Error::custom("labels must have at most 32 entries"));
                    }
                    labels.push(entry);
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a, T: Deserialize<'de>"))]
pub(super) struct Batch<'a, T> {
    jobs: Bounded<T>,
    #[serde(borrow)]
    then: Option<Submit<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pull<'a> {
    #[serde(borrow)]
    pub(super) worker_id: Text<'a>,
    #[serde(borrow)]
    pub(super) types: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub(super) queues: Option<Vec<Text<'a>>>,
    pub(super) limit: Option<u64>,
    pub(super) wait_ms: Option<u64>,
    pub(super) lease_ms: Option<u64>,
}

/// Reports, each read on its own if one of them is wrong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a, T: Deserialize<'de>"))]
pub(super) struct Reports<'a, T> {
    items: Bounded<T>,
    #[serde(borrow)]
    pull: Option<Pull<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete<'a> {
    #[serde(borrow)]
    pub(super) job_id: Text<'a>,
    #[serde(borrow)]
    pub(super) lease_token: Text<'a>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail<'a> {
    #[serde(borrow)]
    pub(super) job_id: Text<'a>,
    #[serde(borrow)]
    pub(super) lease_token: Text<'a>,
    #[serde(borrow)]
    pub(super) error_code: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    pub(super) retryable: Option<bool>,
    pub(super) retry_delay_ms: Option<u64>,
    pub(super) snooze_ms: Option<u64>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Release<'a> {
    #[serde(borrow)]
    pub(super) job_id: Text<'a>,
    #[serde(borrow)]
    pub(super) lease_token: Text<'a>,
    #[serde(borrow)]
    pub(super) reason: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a, T: Deserialize<'de>"))]
pub(super) struct Beats<'a, T> {
    #[serde(borrow)]
    worker_id: Text<'a>,
    lease_ms: Option<u64>,
    items: Bounded<T>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Beat<'a> {
    #[serde(borrow)]
    pub(super) job_id: Text<'a>,
    #[serde(borrow)]
    pub(super) lease_token: Text<'a>,
    #[serde(borrow)]
    pub(super) progress: Option<&'a RawValue>,
}

/// What a worker says of its progress, if it says more than a number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Told<'a> {
    pub(super) percent: Option<f64>,
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) checkpoint: Option<&'a RawValue>,
}

/// Items of a list, each fine or wrong on its own.
pub(super) type Items<T> = Vec<Result<T, Refusal>>;

/// Reads `{"jobs":[...],"then":{...}}`. Normally in one go; if that fails, item by item, so that
/// one wrong job does not spoil its neighbours.
pub(super) fn batch(text: &str) -> Result<(Items<Submit<'_>>, Option<Submit<'_>>), Refusal> {
    match json::parse::<Batch<'_, Submit<'_>>>(text) {
        Ok(batch) => Ok((all_fine(batch.jobs)?, batch.then)),
        Err(error) => {
            let loose = json::parse::<Batch<'_, &RawValue>>(text)
                .map_err(|_| json::explain::<Batch<'_, Submit<'_>>>(text, &error))?;
            Ok((one_by_one(loose.jobs)?, loose.then))
        }
    }
}

/// Reads `{"items":[...],"pull":{...}}` in the same way.
pub(super) fn reports<'a, T: Deserialize<'a>>(
    text: &'a str,
) -> Result<(Items<T>, Option<Pull<'a>>), Refusal> {
    match json::parse::<Reports<'a, T>>(text) {
        Ok(reports) => Ok((all_fine(reports.items)?, reports.pull)),
        Err(error) => {
            let loose = json::parse::<Reports<'a, &'a RawValue>>(text)
                .map_err(|_| json::explain::<Reports<'a, T>>(text, &error))?;
            Ok((one_by_one(loose.items)?, loose.pull))
        }
    }
}

/// Reads a heartbeat in the same way.
pub(super) fn beats(text: &str) -> Result<(Text<'_>, Option<u64>, Items<Beat<'_>>), Refusal> {
    match json::parse::<Beats<'_, Beat<'_>>>(text) {
        Ok(beats) => Ok((beats.worker_id, beats.lease_ms, all_fine(beats.items)?)),
        Err(error) => {
            let loose = json::parse::<Beats<'_, &RawValue>>(text)
                .map_err(|_| json::explain::<Beats<'_, Beat<'_>>>(text, &error))?;
            Ok((loose.worker_id, loose.lease_ms, one_by_one(loose.items)?))
        }
    }
}

fn all_fine<T>(list: Bounded<T>) -> Result<Items<T>, Refusal> {
    if list.is_over {
        return Err(refusal::batch_too_large());
    }
    Ok(list.items.into_iter().map(Ok).collect())
}

fn one_by_one<'a, T: Deserialize<'a>>(list: Bounded<&'a RawValue>) -> Result<Items<T>, Refusal> {
    if list.is_over {
        return Err(refusal::batch_too_large());
    }
    Ok(list.items.into_iter().map(|item| json::read(item.get())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_escapes_is_borrowed() {
        let wish: Submit<'_> =
            serde_json::from_str(r#"{"job_type":"a","payload":{"x" : 1},"queue":"q"}"#).unwrap();
        assert!(matches!(wish.job_type.0, Cow::Borrowed("a")));
        assert!(matches!(wish.queue.unwrap().0, Cow::Borrowed("q")));
        assert_eq!(wish.payload.get(), r#"{"x" : 1}"#);
    }

    #[test]
    fn the_twins_agree_with_the_api() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let mut submit = mainspring_api::job::Submit::new("t", raw("null"));
        submit.run_at = Some(mainspring_api::Time(0));
        submit.delay_ms = Some(1);
        submit.priority = Some(1);
        submit.queue = Some("q".into());
        submit.timeout_ms = Some(1);
        submit.max_retries = Some(1);
        submit.idempotency_key = Some("k".into());
        submit.idempotency_scope = Some("s".into());
        submit.trace_id = Some("t".into());
        submit.parent_id = Some("p".into());
        submit.labels.insert("a".into(), "b".into());
        submit.subject = Some("s".into());
        submit.expires_at = Some(mainspring_api::Time(1));
        let text = serde_json::to_string(&submit).unwrap();
        let read: Submit<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.payload.get(), "null");
        assert!(read.expires_at.is_some() && read.labels.is_some());

        let pull = r#""pull":{"worker_id":"w","types":["t"],"queues":["q"],"limit":1,"wait_ms":1,
            "lease_ms":1}"#;
        let item = r#""job_id":"j","lease_token":"l""#;
        let text = format!(
            r#"{{"items":[{{{item},"error_code":"E","message":"m","retryable":true,
                "retry_delay_ms":1}}],{pull}}}"#
        );
        assert!(serde_json::from_str::<mainspring_api::work::Fail>(&text).is_ok());
        assert!(reports::<Fail<'_>>(&text).unwrap().1.is_some());
    }

    #[test]
    fn one_wrong_item_does_not_spoil_its_neighbours() {
        let text = r#"{"jobs":[{"job_type":"a","payload":1},{"job_type":2,"payload":1},{}]}"#;
        let items = batch(text).unwrap().0;
        assert!(items[0].is_ok() && items[1].is_err() && items[2].is_err());
        assert_eq!(batch(r#"{"jobs":{}}"#).unwrap_err().code, "REQ_VALIDATION_FAILED");
        assert_eq!(batch(r#"{"jobs":[}"#).unwrap_err().code, "JSON_INVALID");
        assert_eq!(batch(r#"{"jobs":[],"x":1}"#).unwrap_err().code, "REQ_VALIDATION_FAILED");
        let many = format!("{{\"jobs\":[{}0]}}", "0,".repeat(10_000));
        assert_eq!(batch(&many).unwrap_err().code, "BATCH_TOO_LARGE");
    }
}

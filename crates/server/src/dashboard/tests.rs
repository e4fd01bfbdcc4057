//! What holds for the dashboard as a whole.

use super::*;
use crate::contracts;
use hyper::Method;

/// Texts are pairs by construction; here it is looked at whether they are texts, and whether both
/// have the same places to be filled.
#[test]
fn both_languages_have_every_text() {
    let tables = [
        words::Shell::ALL,
        refused::Refused::ALL,
        sign_in::SignIn::ALL,
        overview::Overview::ALL,
        needs::Needs::ALL,
        jobs::Jobs::ALL,
        job::JobWords::ALL,
        bulk::BulkWords::ALL,
        dlq::DlqWords::ALL,
        schedules::ScheduleWords::ALL,
        schedule_new::NewSchedule::ALL,
        questions::QuestionWords::ALL,
        alerts::AlertWords::ALL,
        triggers::TriggerWords::ALL,
        types::HouseWords::ALL,
        objects::ObjectWords::ALL,
        audit::AuditWords::ALL,
        subscriptions::SubscriptionWords::ALL,
        tokens::TokenWords::ALL,
        tenants::TenantWords::ALL,
        health::HealthWords::ALL,
        making::MakingWords::ALL,
        kin::KinWords::ALL,
    ];
    for (key, en, zh) in tables.into_iter().flatten() {
        assert!(!en.trim().is_empty() && !zh.trim().is_empty(), "{key}");
        assert_eq!(en.matches("{}").count(), zh.matches("{}").count(), "{key}");
    }
}

#[test]
fn no_page_is_at_a_path_of_a_contract() {
    let config = Config::standard();
    let spoken = contracts::Spoken::of(&config);
    for route in routes() {
        assert!(spoken.contract(route.path).is_none(), "{}", route.path);
        let is_known = route.path == "/" || route.path.starts_with("/ui") || is_door(route.path);
        assert!(is_known, "{}", route.path);
    }
}

fn is_door(path: &str) -> bool {
    matches!(path, "/sign-in" | "/sign-out")
}

/// What changes something is behind a session and a form; only the way in is not.
#[test]
fn every_form_but_the_sign_in_is_behind_a_session() {
    for route in routes() {
        let is_page = matches!(route.rule, crate::route::Rule::Page(..));
        if route.method != Method::GET && route.path != "/sign-in" {
            assert!(is_page, "{} {}", route.method, route.path);
            assert_eq!(route.takes, crate::route::Takes::Form, "{}", route.path);
        }
    }
}

#[test]
fn pages_are_linked_once() {
    for (index, page) in PAGES.iter().enumerate() {
        assert!(PAGES[..index].iter().all(|other| other.path != page.path), "{}", page.path);
        let is_served = (page.routes)().iter().any(|route| route.path == page.path);
        assert!(is_served, "{}", page.path);
        assert!(page.name.iter().all(|name| !name.is_empty()));
    }
}

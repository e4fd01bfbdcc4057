//! Somebody at the dashboard without a browser: requests with cookies and forms.

use super::{Caller, Request, Response, Server};

/// A browser without a window: it has cookies.
#[derive(Debug)]
pub struct Visitor<'a> {
    /// Where the pages are.
    pub server: &'a Server,
    /// Names and values.
    pub cookies: Vec<(String, String)>,
    /// What the forms of this session carry.
    pub form: String,
}

impl<'a> Visitor<'a> {
    /// Nobody yet.
    pub fn new(server: &'a Server) -> Self {
        Visitor { server, cookies: Vec::new(), form: String::new() }
    }

    /// Whoever holds a token.
    ///
    /// # Panics
    /// If that is refused.
    pub fn signed_in(server: &'a Server, who: &Caller) -> Self {
        let mut visitor = Visitor::new(server);
        let entered = visitor.enter(&[("token", &who.token)]);
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
        visitor.form = hidden(&visitor.get("/").text(), "form");
        visitor
    }

    /// A request with the cookies on it.
    pub fn request(&self, method: &str, path: &str) -> Request {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Request::new(method, path).header("cookie", &cookies.join("; "))
    }

    /// GET.
    pub fn get(&self, path: &str) -> Response {
        self.server.send(&self.request("GET", path))
    }

    /// A form, without what proves it.
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let request = self.request("POST", path).body(body.join("&"));
        self.server.send(&request.header("content-type", "application/x-www-form-urlencoded"))
    }

    /// The same with what proves the form.
    pub fn send(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let proof = [("form", self.form.as_str())];
        self.post(path, &[&proof[..], fields].concat())
    }

    /// Fetches the sign-in form and sends it.
    pub fn enter(&mut self, fields: &[(&str, &str)]) -> Response {
        let page = self.get("/sign-in");
        self.take_cookies(&page);
        let form = hidden(&page.text(), "form");
        let entered = self.post("/sign-in", &[&[("form", form.as_str())], fields].concat());
        self.take_cookies(&entered);
        entered
    }

    /// Keeps the cookies of an answer.
    ///
    /// # Panics
    /// If they make no sense.
    pub fn take_cookies(&mut self, answer: &Response) {
        for (_, value) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (pair, _) = value.split_once(';').expect("a cookie");
            let (name, value) = pair.split_once('=').expect("a cookie");
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// The value of a hidden field.
///
/// # Panics
/// If there is none.
pub fn hidden(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {name} in {page}"));
    rest.split_once('"').expect("a value").0.to_owned()
}

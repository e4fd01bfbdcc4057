//! `mainspring whoami`: whose token this is, at which server, and where it was found.

use crate::exit;
use crate::output::{record, say, say_wire};
use crate::session::Session;

pub(crate) async fn run(session: Session) -> anyhow::Result<u8> {
    let who = session.client.whoami().await?;
    if session.is_json() {
        say_wire(&who)?;
        return Ok(exit::OK);
    }
    say(&record(&[
        ("user", who.user_id),
        ("tenant", who.tenant_id),
        ("roles", who.roles.join(", ")),
        ("server", session.client.url().to_owned()),
        ("token from", session.token_from.to_owned()),
    ]));
    Ok(exit::OK)
}

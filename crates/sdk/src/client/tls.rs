//! How a server on https proves who it is: by a certificate that the operating system trusts, or by
//! one of the authorities that the caller names, and then by no other.

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// What a client encrypts by. Without https nothing is looked up.
pub(super) fn config(
    is_encrypted: bool,
    authorities: Option<&[u8]>,
) -> Result<ClientConfig, String> {
    let roots = match (is_encrypted, authorities) {
        (false, _) => RootCertStore::empty(),
        (true, Some(authorities)) => named(authorities)?,
        (true, None) => installed()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("encryption cannot be set up: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn named(authorities: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|it| roots.add(it).map_err(|error| error.to_string()));
        added.map_err(|error| format!("a certificate to trust cannot be read: {error}"))?;
    }
    match roots.is_empty() {
        true => Err("there is no certificate in PEM form to trust".to_owned()),
        false => Ok(roots),
    }
}

fn installed() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // One odd certificate among many must not keep us from the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => {
            Err("this system has no certificates to trust; install ca-certificates, or name a \
                     file in MAINSPRING_CA_FILE"
                .to_owned())
        }
        false => Ok(roots),
    }
}

//! Certificates for servers and clients of a test, signed by an authority of its own, all made on
//! the spot: nothing here expires unless it is meant to.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SignatureAlgorithm, date_time_ymd,
};

/// Somebody who signs certificates.
#[derive(Debug)]
pub struct Authority {
    /// Its own certificate, as clients name it in `sslrootcert`.
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both as PEM.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// What a certificate is signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// ECDSA over P-256 with SHA-256.
    Usual,
    /// ECDSA over P-384 with SHA-384.
    Long,
    /// Ed25519, which knows no separate hash.
    WithoutHash,
}

impl Signature {
    fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Signature::Usual => &rcgen::PKCS_ECDSA_P256_SHA256,
            Signature::Long => &rcgen::PKCS_ECDSA_P384_SHA384,
            Signature::WithoutHash => &rcgen::PKCS_ED25519,
        }
    }
}

impl Authority {
    /// One of this name.
    ///
    /// # Panics
    /// If there is no randomness.
    pub fn new(name: &str) -> Self {
        Authority::signing(name, Signature::Usual)
    }

    /// One that signs in this way.
    ///
    /// # Panics
    /// If there is no randomness.
    pub fn signing(name: &str, signature: Signature) -> Self {
        let key = KeyPair::generate_for(signature.algorithm()).expect("a key");
        let mut wish = named(name, &[]);
        wish.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        wish.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = wish.self_signed(&key).expect("it signs itself").pem();
        Authority { certificate, issuer: Issuer::new(wish, key) }
    }

    /// A certificate of a server with these host names and addresses.
    ///
    /// # Panics
    /// If one of them is none.
    pub fn server(&self, hosts: &[&str]) -> Signed {
        self.sign(named("a server", hosts), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The same, out of date for years.
    ///
    /// # Panics
    /// If one of them is none.
    pub fn expired_server(&self, hosts: &[&str]) -> Signed {
        let mut wish = named("a server", hosts);
        wish.not_before = date_time_ymd(2019, 1, 1);
        wish.not_after = date_time_ymd(2020, 1, 1);
        self.sign(wish, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The same, valid for one more day.
    ///
    /// # Panics
    /// If one of them is none.
    #[expect(clippy::disallowed_methods, reason = "certificates are about the world's time")]
    pub fn ending_server(&self, hosts: &[&str]) -> Signed {
        let mut wish = named("a server", hosts);
        let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_secs(24 * 3_600);
        wish.not_after = tomorrow.into();
        self.sign(wish, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate of a client; PostgreSQL takes its name for that of a role.
    ///
    /// # Panics
    /// If there is no randomness.
    pub fn client(&self, role: &str) -> Signed {
        self.sign(named(role, &[]), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut wish: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Signed {
        wish.extended_key_usages = vec![purpose];
        wish.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        wish.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key");
        let certificate = wish.signed_by(&key, &self.issuer).expect("it signs").pem();
        Signed { certificate, key: key.serialize_pem() }
    }
}

/// Valid from long ago until long after any test.
fn named(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut wish = CertificateParams::new(hosts).expect("names of hosts");
    wish.distinguished_name.push(DnType::CommonName, name);
    wish.not_before = date_time_ymd(2020, 1, 1);
    wish.not_after = date_time_ymd(2120, 1, 1);
    wish
}

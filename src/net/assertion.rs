//! The proof of who this program is that a private key signs: a JSON Web Token (RFC 7523), in ES256 or RS256.

use base64::Engine as _;
use ring::{rand::SystemRandom, signature};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject as _};
use serde_json::{Value, json};

/// Seconds for which a proof holds.
const SECONDS: u64 = 120;

/// A signed proof that it is the client `id` who asks `issuer`, at `now` (seconds since the Unix epoch). Error: why `pem` signs nothing.
pub fn signed(pem: &[u8], id: &str, issuer: &str, now: u64) -> Result<String, String> {
    let key = PrivatePkcs8KeyDer::from_pem_slice(pem)
        .map_err(|_| "it is no PKCS #8 private key in PEM (openssl pkcs8 -topk8 -nocrypt makes one)")?;
    let key = key.secret_pkcs8_der();
    let random = SystemRandom::new();
    let claims = json!({
        "iss": id,
        "sub": id,
        "aud": issuer,
        "iat": now,
        "exp": now + SECONDS,
        "jti": uuid::Uuid::new_v4().to_string(),
    });
    let text = |algorithm: &str| {
        let head = json!({ "alg": algorithm, "typ": "JWT" });
        format!("{}.{}", encoded(&head), encoded(&claims))
    };
    let curve = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let (text, signed) = if let Ok(pair) = signature::EcdsaKeyPair::from_pkcs8(curve, key, &random) {
        let text = text("ES256");
        let signed = pair.sign(&random, text.as_bytes());
        (text, signed.map(|it| it.as_ref().to_vec()))
    } else {
        let pair = signature::RsaKeyPair::from_pkcs8(key);
        let pair = pair.map_err(|it| format!("it is neither a P-256 nor an RSA key ({it})"))?;
        let text = text("RS256");
        let mut signed = vec![0; pair.public().modulus_len()];
        let done = pair.sign(&signature::RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signed);
        (text, done.map(|()| signed))
    };
    let signed = signed.map_err(|_| "the key cannot sign")?;
    Ok(format!("{text}.{}", base64(&signed)))
}

fn encoded(value: &Value) -> String {
    base64(value.to_string().as_bytes())
}

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made for tests; they open nothing.
    const KEYS: [(&str, &str); 2] = [
        ("ES256", include_str!("../../tests/fixtures/tls/client.pem")),
        ("RS256", include_str!("../../tests/fixtures/tls/rsa.pem")),
    ];

    #[test]
    fn the_proof_is_signed_by_the_key() {
        for (algorithm, pem) in KEYS {
            let signed = signed(pem.as_bytes(), "us", "https://login.example", 1000).unwrap();
            let parts: Vec<_> = signed.split('.').collect();
            let decoded = |at: usize| {
                base64::engine::general_purpose::URL_SAFE_NO_PAD
                    .decode(parts[at])
                    .unwrap()
            };
            let value = |at| serde_json::from_slice::<Value>(&decoded(at)).unwrap();
            assert_eq!(value(0)["alg"], algorithm);
            let claims = value(1);
            assert_eq!(
                (&claims["iss"], &claims["aud"], &claims["exp"]),
                (&json!("us"), &json!("https://login.example"), &json!(1120))
            );
            let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
            let message = format!("{}.{}", parts[0], parts[1]);
            let (public, verifier): (Vec<u8>, &dyn signature::VerificationAlgorithm) = if algorithm == "ES256" {
                let curve = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
                let pair = signature::EcdsaKeyPair::from_pkcs8(curve, der.secret_pkcs8_der(), &SystemRandom::new());
                let public = signature::KeyPair::public_key(&pair.unwrap()).as_ref().to_vec();
                (public, &signature::ECDSA_P256_SHA256_FIXED)
            } else {
                let pair = signature::RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
                let public = signature::KeyPair::public_key(&pair).as_ref().to_vec();
                (public, &signature::RSA_PKCS1_2048_8192_SHA256)
            };
            let key = signature::UnparsedPublicKey::new(verifier, public);
            assert!(key.verify(message.as_bytes(), &decoded(2)).is_ok(), "{algorithm}");
        }
        assert!(signed(b"no key", "us", "x", 0).unwrap_err().contains("PKCS #8"));
    }
}

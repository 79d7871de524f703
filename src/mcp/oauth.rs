//! Signing in to a server behind HTTP: finding its authorization server, the code flow with PKCE in the user's browser, and the tokens,
//! which are kept in a file that only the user can read and are sent to that server only.
//!
//! What a server says about where to sign in is as foreign as all else that it says: addresses must be `https` and public, or on this
//! machine if the server itself is, and the issuer must call itself what it was called.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};
use url::Url;

use super::{
    connection::{Connection, Transport},
    definition::OAuthClient,
    host::Host,
    http::Http,
    info::Error,
};
use crate::{
    config::Secret,
    net::{
        assertion,
        client::{Client, Peer, Request},
        fetch::{self, Answer, FetchLimits, FetchOptions},
    },
    os::file::{self, Access},
    text::Sanitized,
};

/// Bytes of an answer of an authorization server.
const ANSWER_BYTES: usize = 1 << 20;
/// Bytes of the file of tokens.
const FILE_BYTES: u64 = 4 << 20;
/// Time for which the renewal of a token by another program is waited for.
const RENEWAL: Duration = Duration::from_secs(20);
/// Time before its end at which a token is renewed.
const EARLY: Duration = Duration::from_mins(1);
/// Bytes of the file of a private key.
const KEY_BYTES: u64 = 64 << 10;
/// Bytes of the request that brings the code.
const CALLBACK_BYTES: u64 = 16 << 10;

/// The authorization server of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthServer {
    pub issuer: String,
    /// The server itself, as tokens name it.
    pub resource: String,
    /// Where a user signs in, and whether it supports PKCE (S256).
    authorization_endpoint: Option<Url>,
    has_pkce: bool,
    token_endpoint: Url,
    registration_endpoint: Option<Url>,
    revocation_endpoint: Option<Url>,
    scopes: Vec<String>,
    /// Answers name the issuer.
    names_issuer: bool,
    /// Ways in which clients show who they are at the token endpoint.
    methods: Vec<String>,
    /// It also gives tokens for when the user is away.
    is_offline: bool,
}

/// A token and what is needed to renew it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    access: String,
    refresh: Option<String>,
    /// Seconds since the Unix epoch; `None`: it says nothing.
    ends_at: Option<u64>,
    issuer: String,
    resource: String,
    /// Where it is renewed.
    endpoint: String,
    revocation_endpoint: Option<String>,
    client: ClientId,
    scope: String,
    /// This program signs in by itself, and does so again when it has ended.
    #[serde(default)]
    is_alone: bool,
}

/// The name of this program at an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientId {
    id: String,
    secret: Option<String>,
    /// `client_secret_basic`, `client_secret_post`, `private_key_jwt` or `none`.
    method: String,
    /// The file of a private key.
    #[serde(default)]
    key_file: Option<PathBuf>,
}

impl AuthServer {
    /// Asks for these scopes, too.
    pub fn add_scopes(&mut self, scopes: &str) {
        for scope in scopes.split_whitespace() {
            if !self.scopes.iter().any(|it| it == scope) {
                self.scopes.push(scope.to_owned());
            }
        }
    }
}

impl Token {
    /// The scopes that it was given for.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The token as requests bear it.
    pub fn access(&self) -> &str {
        &self.access
    }

    fn is_over(&self) -> bool {
        self.ends_at.is_some_and(|it| it <= now() + EARLY.as_secs())
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_secs())
}

/// The file of tokens, by the address of the server.
#[derive(Clone, Debug)]
pub struct Tokens {
    path: PathBuf,
}

impl Tokens {
    /// The file below the state folder. It need not exist.
    pub fn under(state: &Path) -> Self {
        Self {
            path: state.join("mcp-tokens").join("tokens.json"),
        }
    }

    /// The token for a server; `None` if the user has not signed in.
    pub fn get(&self, server: &str) -> Option<Token> {
        let token = self.read().ok()?.remove(&canonical(server)?)?;
        for secret in [Some(&token.access), token.refresh.as_ref()].into_iter().flatten() {
            // Kept out of everything that is stored or shown.
            drop(Secret::new(secret));
        }
        Some(token)
    }

    /// Keeps a token.
    pub fn keep(&self, server: &str, token: Token) -> Result<(), String> {
        let server = canonical(server).ok_or("the address cannot be read")?;
        self.change(|it| {
            it.insert(server, token);
        })
    }

    /// Removes a token and returns it.
    pub fn remove(&self, server: &str) -> Result<Option<Token>, String> {
        let server = canonical(server).ok_or("the address cannot be read")?;
        let mut removed = None;
        self.change(|it| removed = it.remove(&server))?;
        Ok(removed)
    }

    fn read(&self) -> Result<BTreeMap<String, Token>, String> {
        match file::read(&self.path, FILE_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|_| format!("{} is not a list written by sheaf\nmove it aside", self.path.display())),
            Err(error) if error.is_absent() => Ok(BTreeMap::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Token>)) -> Result<(), String> {
        let _held = self.lock()?;
        self.change_held(change)
    }

    /// The right to change the file. Waits two seconds for another program; blocks.
    fn lock(&self) -> Result<file::Lock, String> {
        if let Some(folder) = self.path.parent() {
            file::private_folder(folder).map_err(|it| it.to_string())?;
        }
        let held = file::lock_soon(&self.path.with_extension("lock")).map_err(|it| it.to_string())?;
        held.ok_or_else(|| format!("{} is being written by another program", self.path.display()))
    }

    /// The token for a server, renewed if it has ended or is the one that was `refused`; `None` without one. Of two programs that
    /// renew one token the second takes the result of the first. Error: why it is not renewed.
    pub async fn renewed(&self, server: &str, refused: Option<&str>) -> Result<Option<Token>, String> {
        let holds = |it: &Token| !it.is_over() && refused != Some(it.access());
        let Some(token) = self.get(server) else { return Ok(None) };
        if holds(&token) {
            return Ok(Some(token));
        }
        let tokens = self.clone();
        let began = std::time::Instant::now();
        let held = loop {
            let tokens = tokens.clone();
            let held = tokio::task::spawn_blocking(move || tokens.lock()).await;
            match held.map_err(|it| it.to_string())? {
                Ok(held) => break held,
                Err(why) if began.elapsed() > RENEWAL => return Err(why),
                Err(_) => {}
            }
        };
        let Some(token) = self.get(server) else { return Ok(None) };
        if holds(&token) {
            return Ok(Some(token));
        }
        let token = token.renewed().await?;
        let server = canonical(server).ok_or("the address cannot be read")?;
        let kept = token.clone();
        self.change_held(|it| {
            it.insert(server, kept);
        })?;
        drop(held);
        Ok(Some(token))
    }

    fn change_held(&self, change: impl FnOnce(&mut BTreeMap<String, Token>)) -> Result<(), String> {
        let mut tokens = self.read()?;
        change(&mut tokens);
        let text = serde_json::to_vec_pretty(&tokens).unwrap_or_default();
        file::write(&self.path, &text, Access::Private).map_err(|it| it.to_string())
    }
}

/// The address of a server as its tokens name it: without fragment, query and a slash at its end.
fn canonical(server: &str) -> Option<String> {
    let mut url = Url::parse(server).ok()?;
    url.set_fragment(None);
    url.set_query(None);
    let text = url.to_string();
    Some(text.strip_suffix('/').unwrap_or(&text).to_owned())
}

/// The value of a parameter of a challenge: `scope="a b"`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some(at) = rest.find(name) {
        let is_start = at == 0 || rest.as_bytes().get(at - 1).is_some_and(|it| b" ,".contains(it));
        let after = rest.get(at + name.len()..)?;
        if is_start && let Some(value) = after.trim_start().strip_prefix('=') {
            let value = value.trim_start();
            return Some(match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
                None => value.split([',', ' ']).next().unwrap_or_default().to_owned(),
            });
        }
        rest = after;
    }
    None
}

/// A way to other hosts on behalf of one server.
struct Way {
    /// Hosts on this machine that may be reached, because the server is one.
    near: Vec<String>,
}

impl Way {
    fn of(server: &Url) -> Self {
        let host = server.host_str().unwrap_or_default();
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        Self {
            near: if is_here {
                ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec()
            } else {
                Vec::new()
            },
        }
    }

    /// An address that may be reached.
    fn checked(&self, text: &str) -> Result<Url, String> {
        let shown = || Sanitized::line(text).as_str().chars().take(200).collect::<String>();
        let url = Url::parse(text).map_err(|_| format!("`{}` is no address", shown()))?;
        let host = url.host_str().unwrap_or_default();
        let is_near = self.near.iter().any(|it| it == host);
        if url.scheme() != "https" && !(url.scheme() == "http" && is_near) {
            return Err(format!("`{}` is not https", shown()));
        }
        fetch::check_literal(&url, &self.near).map_err(|it| it.to_string())?;
        Ok(url)
    }

    fn options(&self) -> FetchOptions<'_> {
        FetchOptions {
            limits: FetchLimits {
                bytes: ANSWER_BYTES,
                redirects: 0,
                time: Duration::from_secs(15),
            },
            resolver: &fetch::System,
            near: &self.near,
        }
    }

    /// A document of JSON; `None` if there is none.
    async fn json(&self, url: &Url) -> Result<Option<Value>, String> {
        match fetch::get(url, &self.options()).await {
            Ok(Answer::Page(page)) if page.status.is_success() => Ok(serde_json::from_slice(&page.body).ok()),
            Ok(_) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sends a form or JSON; gives the status and the answer.
    async fn post(&self, url: &Url, body: Vec<u8>, media: &str, basic: Option<&str>) -> Result<(u16, Value), String> {
        fetch::check(url, &self.options()).await.map_err(|it| it.to_string())?;
        let mut base = url.clone();
        base.set_path("/");
        base.set_query(None);
        let client = Client::new(Peer::new(base)).map_err(|it| it.to_string())?;
        let mut request = Request::post(url.path().trim_start_matches('/'), body)
            .accept("application/json")
            .header("content-type", media);
        for (name, value) in url.query_pairs() {
            request = request.query(name, value);
        }
        if let Some(basic) = basic {
            request = request.header("authorization", &format!("Basic {basic}"));
        }
        let response = client.open(request).await.map_err(|it| it.to_string())?;
        let status = response.status.as_u16();
        let body = response.body.read(ANSWER_BYTES).await.map_err(|it| it.to_string())?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

/// Returns true if `below` is the path `above`, or lies below it.
fn is_above(above: &str, below: &str) -> bool {
    let rest = below.trim_end_matches('/').strip_prefix(above.trim_end_matches('/'));
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Finds where to sign in. `challenge`: the header `WWW-Authenticate` of the server's answer.
pub async fn find(server: &str, challenge: &str) -> Result<AuthServer, String> {
    let url = Url::parse(server).map_err(|it| format!("its address cannot be read: {it}"))?;
    let way = Way::of(&url);
    let path = url.path().trim_matches('/');
    let mut places = Vec::new();
    match parameter(challenge, "resource_metadata") {
        Some(named) => places.push(way.checked(&named)?),
        None => {
            let at = |path: &str| url.join(&format!("/.well-known/oauth-protected-resource{path}")).ok();
            if !path.is_empty() {
                places.extend(at(&format!("/{path}")));
            }
            places.extend(at(""));
        }
    }
    let mut about = None;
    for place in &places {
        if let Some(found) = way.json(place).await? {
            about = Some(found);
            break;
        }
    }
    let texts = |value: &Value, name: &str| -> Vec<String> {
        let list = value.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect()
    };
    let own = canonical(server).unwrap_or_default();
    let (issuer, resource, supported) = match &about {
        Some(about) => {
            let named = about.get("resource").and_then(Value::as_str).unwrap_or(&own);
            let named_url = Url::parse(named).ok();
            // A token for another server is none for this one.
            let is_ours = named_url.is_some_and(|it| it.origin() == url.origin() && is_above(it.path(), url.path()));
            if !is_ours {
                return Err("what it says about itself names another server".to_owned());
            }
            let issuer = texts(about, "authorization_servers").into_iter().next();
            let issuer = issuer.ok_or("it names no authorization server")?;
            (issuer, named.to_owned(), texts(about, "scopes_supported"))
        }
        // Servers of before this document was invented are their own authorization servers.
        None => (url.origin().ascii_serialization(), own, Vec::new()),
    };
    let issuer_url = way.checked(&issuer)?;
    let metadata = metadata(&way, &issuer, &issuer_url, about.is_none()).await?;
    // Where the server names nobody, whoever is there says who they are.
    let named = metadata.get("issuer").and_then(Value::as_str);
    let issuer = named.map_or(issuer, str::to_owned);
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let endpoint = |name: &str| text(name).map(|it| way.checked(it)).transpose();
    let challenges = texts(&metadata, "code_challenge_methods_supported");
    let wanted = parameter(challenge, "scope").map(|it| it.split_whitespace().map(str::to_owned).collect());
    let offline = texts(&metadata, "scopes_supported")
        .iter()
        .any(|it| it == "offline_access");
    Ok(AuthServer {
        authorization_endpoint: endpoint("authorization_endpoint")?,
        has_pkce: challenges.iter().any(|it| it == "S256"),
        token_endpoint: endpoint("token_endpoint")?.ok_or("there is no token endpoint")?,
        registration_endpoint: endpoint("registration_endpoint")?,
        revocation_endpoint: endpoint("revocation_endpoint")?,
        scopes: wanted.unwrap_or(supported),
        names_issuer: metadata
            .get("authorization_response_iss_parameter_supported")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
        methods: texts(&metadata, "token_endpoint_auth_methods_supported"),
        is_offline: offline,
        issuer,
        resource,
    })
}

/// The description of an authorization server, which must call itself by the name that it was called by.
/// `is_guessed`: nobody has named it, so it only has to be at the same place.
async fn metadata(way: &Way, issuer: &str, url: &Url, is_guessed: bool) -> Result<Value, String> {
    let path = url.path().trim_matches('/');
    let mut places = Vec::new();
    if path.is_empty() {
        places.push("/.well-known/oauth-authorization-server".to_owned());
        places.push("/.well-known/openid-configuration".to_owned());
    } else {
        places.push(format!("/.well-known/oauth-authorization-server/{path}"));
        places.push(format!("/.well-known/openid-configuration/{path}"));
        places.push(format!("/{path}/.well-known/openid-configuration"));
    }
    for place in places {
        let Ok(place) = url.join(&place) else { continue };
        if let Some(found) = way.json(&place).await? {
            let named = found.get("issuer").and_then(Value::as_str).unwrap_or_default();
            let is_there = Url::parse(named).is_ok_and(|it| it.origin() == url.origin());
            if named != issuer && !(is_guessed && is_there) {
                return Err("the authorization server calls itself by another name".to_owned());
            }
            return Ok(found);
        }
    }
    if !is_guessed {
        return Err(
            "its authorization server does not describe itself, so nothing says that it supports PKCE (S256)"
                .to_owned(),
        );
    }
    // Servers of before this document was invented have the usual paths.
    let at = |path: &str| url.join(path).map(String::from).unwrap_or_default();
    Ok(json!({
        "issuer": issuer,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "code_challenge_methods_supported": ["S256"],
    }))
}

/// Asks a server who it is, without a token. Returns its challenge; empty if it gives none, an error if it lets everybody in.
pub async fn challenge(server: &str, headers: Vec<(String, String)>) -> Result<String, String> {
    let http = Http::new(server, headers, None).map_err(|it| it.to_string())?;
    let host = Arc::new(Host::new("", Vec::new()));
    match Connection::open(Transport::Http(Box::new(http)), host, None).await {
        Err(Error::SignIn { challenge }) => Ok(challenge),
        Err(error) => Err(error.to_string()),
        Ok(connection) => match connection.tools().await {
            Err(Error::SignIn { challenge }) => Ok(challenge),
            _ => Err("it asks nobody to sign in".to_owned()),
        },
    }
}

/// An attempt to sign in: the address for the browser, and the place where it comes back.
pub struct Attempt {
    server: AuthServer,
    client: ClientId,
    listener: TcpListener,
    redirect: String,
    verifier: String,
    state: String,
    scope: String,
    /// The address that the user opens.
    pub address: Url,
}

fn random() -> String {
    let bytes = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

impl Attempt {
    /// Prepares to sign in as what the user has registered, `own`. Registers this program if that has no id.
    pub async fn begin(server: AuthServer, own: &OAuthClient) -> Result<Self, String> {
        if !server.has_pkce {
            return Err("its authorization server does not support PKCE (S256)".to_owned());
        }
        let endpoint = server.authorization_endpoint.clone();
        let mut address = endpoint.ok_or("there is no authorization endpoint")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(|it| it.to_string())?;
        let port = listener.local_addr().map_err(|it| it.to_string())?.port();
        let redirect = format!("http://127.0.0.1:{port}/callback");
        let way = Way::of(&Url::parse(&server.resource).map_err(|it| it.to_string())?);
        let client = match ClientId::of(own, &server) {
            Some(client) => client,
            None => register(&way, &server, &redirect).await?,
        };
        let (verifier, state) = (random(), random());
        let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut scopes = server.scopes.clone();
        if server.is_offline && !scopes.iter().any(|it| it == "offline_access") {
            scopes.push("offline_access".to_owned());
        }
        let scope = scopes.join(" ");
        {
            let mut query = address.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &redirect)
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256")
                .append_pair("state", &state)
                .append_pair("resource", &server.resource);
            if !scope.is_empty() {
                query.append_pair("scope", &scope);
            }
        }
        Ok(Self {
            server,
            client,
            listener,
            redirect,
            verifier,
            state,
            scope,
            address,
        })
    }

    /// Waits until the browser comes back with the code. Whatever else asks at the port is sent away.
    pub async fn callback(&self) -> Result<String, String> {
        loop {
            let (stream, _) = self.listener.accept().await.map_err(|it| it.to_string())?;
            let mut stream = BufReader::new(tokio::io::AsyncReadExt::take(stream, CALLBACK_BYTES));
            let mut line = String::new();
            let read = tokio::time::timeout(Duration::from_secs(10), stream.read_line(&mut line)).await;
            let target = line
                .split(' ')
                .nth(1)
                .filter(|_| matches!(read, Ok(Ok(_))))
                .unwrap_or_default()
                .to_owned();
            // Any page may ask at this port: only the answer to this attempt ends it.
            let state = Url::parse(&format!("http://127.0.0.1{target}"))
                .ok()
                .filter(|it| it.path() == "/callback");
            let state = state.and_then(|it| it.query_pairs().find(|it| it.0 == "state").map(|it| it.1.into_owned()));
            let is_ours = state.as_deref() == Some(&self.state);
            let (status, text) = if is_ours {
                (
                    "200 OK",
                    "You are signed in to sheaf, or see there why not. You may close this page.",
                )
            } else {
                ("404 Not Found", "Nothing is here.")
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            );
            let mut stream = stream.into_inner().into_inner();
            stream.write_all(answer.as_bytes()).await.ok();
            stream.shutdown().await.ok();
            if is_ours {
                return Ok(format!("http://127.0.0.1{target}"));
            }
        }
    }

    /// Parses the address that the browser was sent to.
    ///
    /// # Errors
    ///
    /// It is no address, or belongs to another attempt.
    pub fn answer(&self, redirected: &str) -> Result<Url, String> {
        let url = Url::parse(redirected.trim()).map_err(|_| "this is no address".to_owned())?;
        if url.query_pairs().any(|it| it.0 == "state" && it.1 == self.state) {
            return Ok(url);
        }
        Err("this address does not belong to this attempt to sign in".to_owned())
    }

    /// Takes the address that the browser was sent to, and asks for the token.
    pub async fn finish(self, redirected: &str) -> Result<Token, String> {
        let url = self.answer(redirected)?;
        let value = |name: &str| url.query_pairs().find(|it| it.0 == name).map(|it| it.1.into_owned());
        match value("iss") {
            Some(issuer) if issuer != self.server.issuer => {
                return Err("the answer is from another authorization server".to_owned());
            }
            None if self.server.names_issuer => return Err("the answer does not say from whom it is".to_owned()),
            Some(_) | None => {}
        }
        if let Some(error) = value("error") {
            let about = value("error_description").unwrap_or_default();
            return Err(format!(
                "{} {}",
                Sanitized::line(&error).as_str(),
                Sanitized::line(&about).as_str()
            ));
        }
        let code = value("code").ok_or("the answer has no code")?;
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &self.verifier),
            ("resource", &self.server.resource.clone()),
        ];
        let way = Way::of(&Url::parse(&self.server.resource).map_err(|it| it.to_string())?);
        let mut token = Token::before(self.server, self.client, self.scope);
        token.ask(&way, &pairs).await?;
        Ok(token)
    }
}

/// Signs in as this program itself, without a user (client credentials). `own` must have an id, and a secret or a key.
pub async fn sign_in_alone(server: AuthServer, own: &OAuthClient) -> Result<Token, String> {
    let client = ClientId::of(own, &server).filter(|it| it.secret.is_some() || it.key_file.is_some());
    let client = client.ok_or("sign_in = \"client\" needs client_id, and client_secret or client_key_file")?;
    let way = Way::of(&Url::parse(&server.resource).map_err(|it| it.to_string())?);
    let scope = server.scopes.join(" ");
    let mut token = Token::before(server, client, scope);
    token.is_alone = true;
    token.ask_alone(&way).await?;
    Ok(token)
}

impl ClientId {
    /// What the user has registered; `None` without an id.
    fn of(own: &OAuthClient, server: &AuthServer) -> Option<Self> {
        let method = match &own.key_file {
            Some(_) => "private_key_jwt",
            None => method(server, own.secret.is_some()),
        };
        Some(Self {
            id: own.id.clone()?,
            secret: own.secret.as_ref().map(|it| it.expose().to_owned()),
            method: method.to_owned(),
            key_file: own.key_file.clone(),
        })
    }
}

/// The way in which this program shows who it is, with or without a secret that was agreed on.
fn method(server: &AuthServer, has_secret: bool) -> &'static str {
    let has = |it: &str| server.methods.iter().any(|method| method == it);
    if !has_secret && (server.methods.is_empty() || has("none")) {
        "none"
    } else if server.methods.is_empty() || has("client_secret_basic") {
        "client_secret_basic"
    } else {
        "client_secret_post"
    }
}

/// Registers this program.
async fn register(way: &Way, server: &AuthServer, redirect: &str) -> Result<ClientId, String> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err("its authorization server registers no programs\n  register sheaf there yourself, and set client_id in config.toml".to_owned());
    };
    let method = method(server, false);
    let body = json!({
        "client_name": "sheaf",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "scope": server.scopes.join(" "),
    });
    let (status, answer) = way
        .post(endpoint, body.to_string().into_bytes(), "application/json", None)
        .await?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = text("client_id").ok_or_else(|| format!("sheaf could not be registered (status {status})"))?;
    let secret = text("client_secret");
    Ok(ClientId {
        id,
        method: match (text("token_endpoint_auth_method"), &secret) {
            (Some(method), _) => method,
            (None, Some(_)) if method == "none" => "client_secret_basic".to_owned(),
            (None, _) => method.to_owned(),
        },
        secret,
        key_file: None,
    })
}

/// Type of the assertion that a private key signs (RFC 7523).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The form for a token endpoint of `issuer`, and the header that shows who asks, if it is one. Reads the file of a private key.
fn token_form(client: &ClientId, issuer: &str, pairs: &[(&str, &str)]) -> Result<(Vec<u8>, Option<String>), String> {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(pairs);
    let mut basic = None;
    if let Some(path) = &client.key_file {
        let pem = file::read_private(path, KEY_BYTES).map_err(|it| it.to_string())?;
        let signed = assertion::signed(&pem, &client.id, issuer, now());
        let signed = signed.map_err(|it| format!("{}: {it}", path.display()))?;
        form.append_pair("client_id", &client.id)
            .append_pair("client_assertion_type", ASSERTION_TYPE)
            .append_pair("client_assertion", &signed);
        return Ok((form.finish().into_bytes(), None));
    }
    match (client.method.as_str(), &client.secret) {
        ("client_secret_basic", Some(secret)) => {
            let encode = |it: &str| url::form_urlencoded::byte_serialize(it.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encode(&client.id), encode(secret));
            basic = Some(base64::engine::general_purpose::STANDARD.encode(pair));
        }
        ("none", _) | (_, None) => {
            form.append_pair("client_id", &client.id);
        }
        (_, Some(secret)) => {
            form.append_pair("client_id", &client.id)
                .append_pair("client_secret", secret);
        }
    }
    Ok((form.finish().into_bytes(), basic))
}

async fn ask_for_token(
    way: &Way,
    endpoint: &Url,
    (client, issuer): (&ClientId, &str),
    pairs: &[(&str, &str)],
) -> Result<Value, String> {
    let (body, basic) = token_form(client, issuer, pairs)?;
    let (status, answer) = way
        .post(endpoint, body, "application/x-www-form-urlencoded", basic.as_deref())
        .await?;
    if status >= 400 {
        let error = answer.get("error").and_then(Value::as_str).unwrap_or("no reason");
        return Err(format!(
            "no token was given (status {status}: {})",
            Sanitized::line(error).as_str()
        ));
    }
    Ok(answer)
}

impl Token {
    /// What a token will be of, before there is one.
    fn before(server: AuthServer, client: ClientId, scope: String) -> Self {
        Self {
            access: String::new(),
            refresh: None,
            ends_at: None,
            issuer: server.issuer,
            resource: server.resource,
            endpoint: server.token_endpoint.into(),
            revocation_endpoint: server.revocation_endpoint.map(String::from),
            client,
            scope,
            is_alone: false,
        }
    }

    /// Asks for a token, which takes the place of the one that is here.
    async fn ask(&mut self, way: &Way, pairs: &[(&str, &str)]) -> Result<(), String> {
        let endpoint = way.checked(&self.endpoint)?;
        let answer = ask_for_token(way, &endpoint, (&self.client, &self.issuer), pairs).await?;
        self.take(&answer)
    }

    /// Asks for a token of this program's own.
    async fn ask_alone(&mut self, way: &Way) -> Result<(), String> {
        let (resource, scope) = (self.resource.clone(), self.scope.clone());
        let mut pairs = vec![("grant_type", "client_credentials"), ("resource", &resource)];
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        self.ask(way, &pairs).await
    }

    /// Takes what an authorization server has answered.
    fn take(&mut self, answer: &Value) -> Result<(), String> {
        let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
        self.access = text("access_token")
            .filter(|it| !it.is_empty())
            .ok_or("the answer has no token")?;
        if text("token_type").is_some_and(|it| !it.eq_ignore_ascii_case("bearer")) {
            return Err("the token is of an unknown type".to_owned());
        }
        drop(Secret::new(self.access.clone()));
        if let Some(refresh) = text("refresh_token") {
            drop(Secret::new(refresh.clone()));
            self.refresh = Some(refresh);
        }
        let seconds = answer
            .get("expires_in")
            .and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
        self.ends_at = seconds.map(|it| now().saturating_add(it));
        if let Some(scope) = text("scope") {
            self.scope = scope;
        }
        Ok(())
    }

    /// A new token in the place of this one. Error: the user has to sign in again, or nobody answers.
    async fn renewed(mut self) -> Result<Self, String> {
        let way = Way::of(&Url::parse(&self.resource).map_err(|it| it.to_string())?);
        if self.is_alone {
            self.ask_alone(&way).await?;
            return Ok(self);
        }
        let refresh = self.refresh.clone().ok_or("the token has ended")?;
        let resource = self.resource.clone();
        let pairs = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.as_str()),
            ("resource", resource.as_str()),
        ];
        self.ask(&way, &pairs).await?;
        Ok(self)
    }

    /// Tells the authorization server that the token is not used any more, where it can be told.
    pub async fn revoke(&self) -> Result<(), String> {
        let Some(endpoint) = &self.revocation_endpoint else {
            return Ok(());
        };
        let way = Way::of(&Url::parse(&self.resource).map_err(|it| it.to_string())?);
        let endpoint = way.checked(endpoint)?;
        let token = self.refresh.as_ref().unwrap_or(&self.access);
        ask_for_token(&way, &endpoint, (&self.client, &self.issuer), &[("token", token)])
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_resource_covers_what_lies_below_it() {
        for (above, below, is_so) in [
            ("/", "/mcp", true),
            ("", "/", true),
            ("/a", "/a", true),
            ("/a/", "/a", true),
            ("/a", "/a/b", true),
            ("/a", "/ab", false),
            ("/a/b", "/a", false),
        ] {
            assert_eq!(is_above(above, below), is_so, "{above} {below}");
        }
    }

    #[test]
    fn a_challenge_is_read() {
        let challenge = r#"Bearer error="x", resource_metadata="https://a.example/m", scope="one two", realm=r"#;
        assert_eq!(
            parameter(challenge, "resource_metadata").as_deref(),
            Some("https://a.example/m")
        );
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("one two"));
        assert_eq!(parameter(challenge, "realm").as_deref(), Some("r"));
        assert_eq!(parameter(challenge, "metadata"), None);
        assert_eq!(parameter("", "scope"), None);
    }

    #[test]
    fn nobody_is_sent_to_a_private_place() {
        let way = Way::of(&"https://tools.example/mcp".parse().unwrap());
        for (url, is_fine) in [
            ("https://login.example/x", true),
            ("http://login.example/x", false),
            ("https://127.0.0.1/x", false),
            ("https://169.254.169.254/latest", false),
            ("http://localhost:80/x", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(way.checked(url).is_ok(), is_fine, "{url}");
        }
        let here = Way::of(&"http://localhost:8000/mcp".parse().unwrap());
        assert!(here.checked("http://127.0.0.1:9000/x").is_ok() && here.checked("http://a.example/x").is_err());
    }

    #[test]
    fn tokens_are_kept_by_server_and_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::under(folder.path());
        let mut token = Token {
            access: String::new(),
            refresh: None,
            ends_at: None,
            issuer: "https://i.example".to_owned(),
            resource: "https://a.example/mcp".to_owned(),
            endpoint: String::new(),
            revocation_endpoint: None,
            client: ClientId::default(),
            scope: String::new(),
            is_alone: false,
        };
        let answer = json!({ "access_token": "secret-1234567890abcdef", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "again-1234567890abcdef" });
        token.take(&answer).unwrap();
        assert!(!token.is_over());
        assert!(
            token
                .take(&json!({ "access_token": "x", "token_type": "mac" }))
                .is_err()
        );
        token.take(&answer).unwrap();
        tokens.keep("https://a.example/mcp/", token.clone()).unwrap();
        assert_eq!(tokens.get("https://a.example/mcp"), Some(token));
        assert_eq!(tokens.get("https://b.example/mcp"), None);
        assert_eq!(
            crate::text::redact::held("it is secret-1234567890abcdef!"),
            "it is [redacted]!"
        );
        assert!(tokens.remove("https://a.example/mcp").unwrap().is_some());
        assert_eq!(tokens.get("https://a.example/mcp"), None);
    }
}

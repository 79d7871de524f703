//! Whom to ask, for which model.

use pretty_assertions::assert_eq;

use super::*;

/// Returns the server, address, key and model that the settings choose.
fn asked(user: &str, variables: &str, options: &CommandLineSettings) -> String {
    let (settings, problems) = all(user, "", variables, options);
    assert_eq!(problems, NOTHING, "{user} {variables}");
    let model = settings.model().unwrap_or("-");
    match settings.upstream() {
        Upstream::Nobody => format!("nobody {model}"),
        Upstream::Gateway(it) => format!("gateway {} {model}", it.connection.url().unwrap_or("-")),
        Upstream::Provider(name, it) => {
            let key = match &it.key {
                KeySource::None => "none",
                KeySource::Given(it) => it.expose(),
                KeySource::Variables(names) => &names.join(" "),
                KeySource::Keyring(_) => "keyring",
                KeySource::Command(_) => "command",
                KeySource::File(_) => "file",
            };
            format!("{name} {} {key} {model}", it.connection.url().unwrap_or("-"))
        }
    }
}

#[test]
fn the_strongest_word_decides_whom_to_ask_for_which_model() {
    let gateway = "gateway.url = 'https://g'\n";
    let two = "[providers.a]\nbase_url = 'https://a'\nmodel = 'm'\n[providers.b]\nbase_url = 'https://b'\n";
    let options = |it: &str| {
        let mut options = CommandLineSettings::default();
        for pair in it.split_whitespace() {
            let (name, value) = pair.split_once('=').expect("a pair");
            let slot = match name {
                "gateway" => &mut options.gateway,
                "provider" => &mut options.provider,
                _ => &mut options.model,
            };
            *slot = Some(value.to_owned());
        }
        options
    };
    for (user, variables, flags, expected) in [
        ("", "", "", "nobody -"),
        ("", "OPENAI_MODEL=m", "", "nobody -"),
        (
            "[providers.ollama]\nmodel = 'q'",
            "OPENAI_MODEL=m",
            "",
            "ollama http://127.0.0.1:11434 none q",
        ),
        (
            "",
            "OPENAI_API_KEY=k",
            "",
            "openai https://api.openai.com/v1 k gpt-6.1-sol",
        ),
        (
            "",
            "ANTHROPIC_API_KEY=k",
            "provider=anthropic",
            "anthropic https://api.anthropic.com ANTHROPIC_API_KEY claude-sonnet-5-5",
        ),
        (
            "",
            "OPENAI_API_KEY=k OPENAI_MODEL=m",
            "",
            "openai https://api.openai.com/v1 k m",
        ),
        (
            "",
            "OPENAI_BASE_URL=http://localhost:1/v1",
            "",
            "openai http://localhost:1/v1 none -",
        ),
        (
            "",
            "OPENAI_BASE_URL=http://localhost:1/v1 OPENAI_API_KEY=k OPENAI_MODEL=m",
            "model=n",
            "openai http://localhost:1/v1 k n",
        ),
        (
            "",
            "GROQ_API_KEY=k",
            "provider=groq",
            "groq https://api.groq.com/openai/v1 GROQ_API_KEY -",
        ),
        (
            "",
            "",
            "provider=ollama model=q",
            "ollama http://127.0.0.1:11434 none q",
        ),
        (gateway, "", "", "gateway https://g -"),
        (gateway, "OPENAI_API_KEY=k", "", "gateway https://g -"),
        (gateway, "", "provider=ollama", "ollama http://127.0.0.1:11434 none -"),
        (two, "", "", "nobody -"),
        (two, "", "provider=a", "a https://a none m"),
        (two, "", "provider=b", "b https://b none -"),
        (two, "SHEAF_GATEWAY=https://g", "provider=a", "a https://a none m"),
        (two, "SHEAF_PROVIDER=a", "gateway=https://g", "gateway https://g -"),
        (
            two,
            "SHEAF_PROVIDER=a SHEAF_GATEWAY=https://g",
            "",
            "gateway https://g -",
        ),
        (two, "SHEAF_MODEL=x", "provider=a", "a https://a none x"),
        ("[providers.a]\nbase_url = 'https://a'", "", "", "a https://a none -"),
        (
            "model = 'x'\n[providers.a]\nbase_url = 'https://a'\nmodel = 'm'",
            "",
            "",
            "a https://a none m",
        ),
        (
            "[providers.mistral]\nbase_url = 'https://mine'",
            "MISTRAL_API_KEY=k",
            "",
            "mistral https://mine none -",
        ),
    ] {
        assert_eq!(
            asked(user, variables, &options(flags)),
            expected,
            "{user}|{variables}|{flags}"
        );
    }
}

#[test]
fn a_project_that_names_a_model_chooses_nobody() {
    let project = "[providers.groq]\nmodel = 'big'\n";
    let (settings, problems) = all("", project, "GROQ_API_KEY=k", &CommandLineSettings::default());
    assert_eq!((settings.upstream(), problems.len()), (Upstream::Nobody, 0));
}

#[test]
fn a_provider_that_cannot_be_reached_is_told() {
    for (text, expected) in [
        (
            "[providers.olama]\nmodel = 'x'",
            "config.toml:2:9: `providers.olama` has no base_url\n  did you mean `ollama`? if not, add its address",
        ),
        (
            "[providers.far]\nbase_url = 'http://far.example/v1'",
            "config.toml:2:12: `http://far.example/v1` would send the key and the conversation unencrypted\n  use https://, or set `allow_http = true` for it",
        ),
        (
            "[gateway]\nurl = 'http://10.0.0.1'",
            "config.toml:2:7: `http://10.0.0.1` would send the key and the conversation unencrypted\n  use https://, or set `allow_http = true` for it",
        ),
        ("[gateway]\nurl = 'http://10.0.0.1'\nallow_http = true", ""),
    ] {
        assert_eq!(read(text).1.join("|"), expected, "{text}");
    }
}

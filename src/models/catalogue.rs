//! Known properties of models, without asking anyone: windows, prices, abilities.
//!
//! The figures are data (`assets/models.toml`), with their source and their date. They grow old, so what a server or the
//! configuration says wins, and a model that is not listed under its very name has no price: unknown is not zero.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde::Deserialize;

use super::Tokens;
use crate::config;

/// A model under its maker's name for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[cfg_attr(not(test), expect(dead_code, reason = "a section is found by it"))]
    id: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "a section is found by it"))]
    maker: String,
    window: u64,
    max_output: Option<u64>,
    price_in: Option<f64>,
    price_out: Option<f64>,
    price_cached: Option<f64>,
    price_written: Option<f64>,
    long: Option<Long>,
    tools: bool,
    images: bool,
    reasoning: bool,
    parallel: Option<bool>,
    #[cfg_attr(not(test), expect(dead_code, reason = "a section is found by it"))]
    until: Option<String>,
}

/// Prices of a request that is longer than `above`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Long {
    pub above: u64,
    pub r#in: f64,
    pub out: f64,
    pub cached: Option<f64>,
}

/// Models whose names begin alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    #[cfg_attr(not(test), expect(dead_code, reason = "a section is found by it"))]
    prefix: String,
    window: u64,
    tools: bool,
    images: bool,
    reasoning: bool,
}

/// Thirty thousand bytes, of which a program needs to know one model: the rest is looked through and not parsed.
const TEXT: &str = include_str!("../../assets/models.toml");

/// A table of the file, with its name.
#[derive(Clone, Copy)]
struct Section {
    name: &'static str,
    body: &'static str,
}

impl Section {
    /// Those under `[[heading]]`, in order. A test holds them against what a reader of TOML finds.
    fn all(heading: &'static str) -> impl Iterator<Item = Self> {
        TEXT.split("\n[[").skip(1).filter_map(move |it| {
            let body = it.strip_prefix(heading)?.strip_prefix("]]\n")?;
            // The name comes first.
            let name = body.split('"').nth(1)?;
            Some(Self { name, body })
        })
    }

    fn read<T: serde::de::DeserializeOwned>(self) -> T {
        toml::from_str(self.body).expect("a test reads all of the catalogue that is compiled in")
    }

    /// A string of the table.
    fn word(self, name: &str) -> Option<&'static str> {
        let mut lines = self.body.lines();
        lines.find_map(|it| it.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
    }
}

/// Properties of a model. `None`: unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownService {
    /// Tokens that it takes in.
    pub window: Option<u64>,
    /// Tokens of an answer at most.
    pub max_output: Option<u64>,
    pub prices: Option<Prices>,
    pub tools: Option<bool>,
    pub images: Option<bool>,
    pub reasoning: Option<bool>,
    /// True if it can call several tools in one answer.
    pub parallel: Option<bool>,
    /// The day on which its maker takes it away: `2026-12-11`.
    pub until: Option<&'static str>,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Price of tokens from the server's cache. `None`: unknown, the usual price counts.
    pub cached: Option<f64>,
    /// Written to the server's cache; none: as any other.
    pub written: Option<f64>,
    pub long: Option<Long>,
}

/// Cost of an answer.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cost {
    pub dollars: f64,
}

/// The day on which the figures were last looked at.
#[cfg(test)]
pub fn checked() -> &'static str {
    let line = TEXT.lines().find_map(|it| it.strip_prefix("checked = \""));
    line.map_or("", |it| it.trim_end_matches('"'))
}

/// The ids of the models of a maker (`openai`, `anthropic`, `google`, `xai`, `deepseek`, `mistral`, …), in order.
#[cfg(test)]
pub fn of_maker(maker: &str) -> impl Iterator<Item = &'static str> {
    let maker = maker.to_owned();
    let listed = Section::all("model").filter(move |it| it.word("maker") == Some(&maker));
    listed.map(|it| it.name)
}

/// Tokens that fit into the window of `model`; `None` when the model is not known here.
pub fn window(model: &str) -> Option<u64> {
    listed(model).window
}

/// Returns the catalogue's entry for `model`.
///
/// `vendor/` in front and a date or a tag behind a name are ignored. A name that only begins like a known one is of
/// that family: it has its window and abilities, and no price.
pub fn listed(model: &str) -> KnownService {
    // It is asked for the same model several times while a request is made ready.
    static LAST: Mutex<Option<(String, KnownService)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((name, known)) if name == model => known.clone(),
        Some(_) | None => {
            let known = look_up(model);
            *last = Some((model.to_owned(), known.clone()));
            known
        }
    }
}

fn look_up(model: &str) -> KnownService {
    let name = plain(model);
    let found = Section::all("model").filter(|it| is_named(&name, &plain(it.name)));
    if let Some(section) = found.max_by_key(|it| it.name.len()) {
        let it: Listed = section.read();
        return KnownService {
            window: Some(it.window),
            max_output: it.max_output,
            prices: it.price_in.zip(it.price_out).map(|(input, output)| Prices {
                input,
                output,
                cached: it.price_cached,
                written: it.price_written,
                long: it.long,
            }),
            tools: Some(it.tools),
            images: Some(it.images),
            reasoning: Some(it.reasoning),
            parallel: it.parallel,
            until: section.word("until"),
        };
    }
    let family = Section::all("family").filter(|it| name.starts_with(&plain(it.name)));
    let family: Option<Family> = family.max_by_key(|it| it.name.len()).map(Section::read);
    family.map_or_else(KnownService::default, |it| KnownService {
        window: Some(it.window),
        tools: Some(it.tools),
        images: Some(it.images),
        reasoning: Some(it.reasoning),
        ..KnownService::default()
    })
}

/// Returns the properties of `model`: the configured ones, else the catalogue's.
pub fn known(model: &str, own: &BTreeMap<String, config::Model>) -> KnownService {
    let listed = listed(model);
    let Some(own) = own.get(model) else { return listed };
    let prices = match (own.price_in, own.price_out) {
        // Figures of the user's are whole: nothing of another price list is mixed into them.
        (Some(input), Some(output)) => Some(Prices {
            input,
            output,
            cached: own.price_cached,
            written: None,
            long: None,
        }),
        (input, output) => listed.prices.map(|it| Prices {
            input: input.unwrap_or(it.input),
            output: output.unwrap_or(it.output),
            cached: own.price_cached.or(it.cached),
            ..it
        }),
    };
    KnownService {
        window: own.window.or(listed.window),
        max_output: own.max_output.or(listed.max_output),
        prices,
        tools: own.tools.or(listed.tools),
        images: own.images.or(listed.images),
        reasoning: own.reasoning.or(listed.reasoning),
        ..listed
    }
}

/// Returns the cost of `tokens` with `model`, by the catalogue alone. `None` if its price is unknown.
#[cfg(test)]
pub fn cost(tokens: &Tokens, model: &str) -> Option<Cost> {
    Some(listed(model).prices?.of(tokens))
}

impl Prices {
    /// Returns the cost of these tokens at this price.
    pub fn of(&self, tokens: &Tokens) -> Cost {
        let long = self.long.filter(|it| tokens.prompt > it.above);
        let (input, output, cached) = match long {
            Some(it) => (it.r#in, it.out, it.cached.or(self.cached)),
            None => (self.input, self.output, self.cached),
        };
        let written = self
            .written
            .map_or(input, |it| it * input / self.input.max(f64::MIN_POSITIVE));
        let read = tokens.cached.min(tokens.prompt);
        let kept = tokens.cache_written.min(tokens.prompt - read);
        let fresh = tokens.prompt - read - kept;
        let sum = fresh as f64 * input
            + read as f64 * cached.unwrap_or(input)
            + kept as f64 * written
            + tokens.completion as f64 * output;
        Cost { dollars: sum / 1e6 }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            dollars: self.dollars + other.dollars,
        }
    }
}

/// A name without the vendor in front, in the one spelling that all spellings come to.
pub(super) fn plain(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    // Amazon's names: `eu.anthropic.claude-…`.
    let name = name.rsplit_once("anthropic.").map_or(name.as_str(), |(_, it)| it);
    name.replace(['.', '_'], "-")
}

/// Returns true if `name` is `id`, except for a date, a version number or a tag at its end.
fn is_named(name: &str, id: &str) -> bool {
    let Some(rest) = name.strip_prefix(id) else {
        return false;
    };
    // `:free`, `:30b`, `@20250929`
    let rest = rest.split([':', '@']).next().unwrap_or_default();
    let is_number = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_digit());
    // `2024-11-20`, `20251101`, `0613`, `09-2025`; a short number alone is another version: `gpt-5-10`.
    let has_year = rest.split('-').any(|it| is_number(it) && it.len() >= 4);
    let is_nothing_else = rest.split('-').skip(1).all(|part| {
        let is_date = is_number(part) && (part.len() >= 4 || (part.len() == 2 && has_year));
        let is_version = part.strip_prefix('v').is_some_and(is_number);
        is_date || is_version || matches!(part, "latest" | "preview")
    });
    is_nothing_else && (rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Catalogue {
        checked: String,
        model: Vec<Listed>,
        family: Vec<Family>,
    }

    #[test]
    fn every_model_that_a_service_starts_with_is_here_to_stay() {
        let named: Vec<&str> = config::SERVICES.iter().filter_map(|it| it.model).collect();
        assert!(named.len() > 5, "{named:?}");
        for model in named {
            let known = listed(model);
            assert_eq!((known.tools, known.until), (Some(true), None), "{model}");
            assert!(Section::all("model").any(|it| it.name == model), "{model}");
        }
    }

    #[test]
    fn looking_through_finds_what_a_reader_of_toml_does() {
        let whole: Catalogue = toml::from_str(TEXT).expect("the catalogue is TOML");
        assert_eq!(checked(), whole.checked);
        let models: Vec<Section> = Section::all("model").collect();
        assert_eq!(models.len(), whole.model.len());
        for (section, it) in models.iter().zip(&whole.model) {
            let read: Listed = section.read();
            assert_eq!((section.name, read.id.as_str()), (it.id.as_str(), it.id.as_str()));
            assert_eq!(section.word("maker"), Some(it.maker.as_str()), "{}", it.id);
            assert_eq!(section.word("until"), it.until.as_deref(), "{}", it.id);
        }
        let families: Vec<&str> = Section::all("family").map(|it| it.name).collect();
        assert_eq!(
            families,
            whole.family.iter().map(|it| it.prefix.as_str()).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_catalogue_holds_together() {
        let whole: Catalogue = toml::from_str(TEXT).expect("the catalogue is TOML");
        let all = &whole.model;
        assert_eq!(checked().len(), "2026-11-20".len());
        for (at, it) in all.iter().enumerate() {
            let twice = all.iter().skip(at + 1).any(|other| plain(&other.id) == plain(&it.id));
            assert!(!twice, "{} stands twice", it.id);
            assert!(
                (1_000..20_000_000).contains(&it.window),
                "{}: window {}",
                it.id,
                it.window
            );
            assert_eq!(it.price_in.is_some(), it.price_out.is_some(), "{}: half a price", it.id);
            let (Some(input), Some(output)) = (it.price_in, it.price_out) else {
                continue;
            };
            assert!(
                (0.0..1000.0).contains(&input) && output >= input,
                "{}: {input} {output}",
                it.id
            );
            assert!(
                it.price_cached.is_none_or(|cached| cached <= input),
                "{}: the cache is dear",
                it.id
            );
            assert!(
                it.price_written.is_none_or(|written| written >= input),
                "{}: writing is cheap",
                it.id
            );
            assert!(
                it.long.is_none_or(|long| long.r#in >= input && long.above < it.window),
                "{}: long",
                it.id
            );
            // Whatever its spelling, a model is found as itself.
            for spelled in [it.id.clone(), format!("{}/{}", it.maker, it.id), it.id.to_uppercase()] {
                assert_eq!(listed(&spelled).window, Some(it.window), "{spelled}");
            }
        }
        for (at, it) in whole.family.iter().enumerate() {
            let mut others = whole.family.iter().skip(at + 1);
            assert!(others.all(|other| other.prefix != it.prefix), "{}", it.prefix);
        }
    }

    #[test]
    fn every_main_maker_is_there_with_prices_and_abilities() {
        for (maker, least) in [
            ("openai", 20),
            ("anthropic", 10),
            ("google", 10),
            ("xai", 6),
            ("deepseek", 3),
            ("mistral", 10),
            ("moonshot", 3),
            ("zai", 8),
            ("alibaba", 8),
        ] {
            let ids: Vec<&str> = of_maker(maker).collect();
            assert!(ids.len() >= least, "{maker}: {ids:?}");
            let priced = ids.iter().filter(|it| listed(it).prices.is_some()).count();
            assert!(
                priced * 2 >= ids.len(),
                "{maker}: {priced} of {} have a price",
                ids.len()
            );
        }
    }

    #[test]
    fn a_name_is_known_in_its_spellings_and_otherwise_by_its_family() {
        let cases: &[(&str, Option<u64>, bool)] = &[
            ("gpt-4o-2024-11-20", Some(128_000), true),
            ("gpt-4-0613", Some(8_192), false),
            ("gpt-4-turbo-preview", Some(128_000), false),
            ("openai/gpt-4.1-mini", Some(1_047_576), true),
            ("anthropic/claude-sonnet-4.5", Some(200_000), true),
            ("claude-opus-4-5-20251101", Some(200_000), true),
            ("eu.anthropic.claude-opus-4-5-20251101-v1:0", Some(200_000), true),
            ("claude-opus-4-5@20251101", Some(200_000), true),
            ("claude-opus-9-turbo", Some(200_000), false),
            ("gpt-5-imaginary", Some(272_000), false),
            ("gpt-5.10", Some(272_000), false),
            ("o1-mini", Some(128_000), false),
            ("Qwen2.5-Coder-0.5B", Some(32_768), false),
            ("qwen3-coder:30b", Some(262_144), false),
            ("gemini-flash-latest", Some(1_048_576), true),
            ("my-own-model", None, false),
            ("", None, false),
            ("llama", None, false),
        ];
        for (model, window, has_price) in cases {
            let known = listed(model);
            assert_eq!((known.window, known.prices.is_some()), (*window, *has_price), "{model}");
        }
    }

    #[test]
    fn a_cost_counts_the_cache_the_long_and_the_unknown() {
        let prices = Prices {
            input: 2.0,
            output: 10.0,
            cached: Some(0.5),
            written: Some(2.5),
            long: Some(Long {
                above: 1_000_000,
                r#in: 4.0,
                out: 20.0,
                cached: None,
            }),
        };
        let tokens = |prompt, cached, cache_written, completion| Tokens {
            prompt,
            cached,
            cache_written,
            completion,
            reasoning: completion,
        };
        for (name, tokens, want) in [
            ("nothing", tokens(0, 0, 0, 0), 0.0),
            ("plain", tokens(500_000, 0, 0, 100_000), 1.0 + 1.0),
            ("half from the cache", tokens(500_000, 250_000, 0, 0), 0.5 + 0.125),
            (
                "some into the cache",
                tokens(500_000, 200_000, 100_000, 0),
                0.4 + 0.1 + 0.25,
            ),
            ("long", tokens(2_000_000, 1_000_000, 0, 100_000), 4.0 + 0.5 + 2.0),
            ("long, and written", tokens(2_000_000, 0, 1_000_000, 0), 4.0 + 5.0),
            ("counts that cannot be", tokens(10, 1_000_000, 1_000_000, 0), 0.000_005),
        ] {
            let got = prices.of(&tokens).dollars;
            assert!((got - want).abs() < 1e-9, "{name}: {got} for {want}");
        }
        let uncached = Prices {
            cached: None,
            written: None,
            long: None,
            ..prices
        };
        let plain = uncached.of(&tokens(500_000, 250_000, 100_000, 0)).dollars;
        assert!((plain - 1.0).abs() < 1e-9, "{plain}");
        assert_eq!(cost(&tokens(1, 0, 0, 1), "my-own-model"), None, "unknown is not zero");
        assert!(cost(&tokens(1_000_000, 0, 0, 0), "gpt-4o").is_some_and(|it| it.dollars > 0.0));
    }

    #[test]
    fn the_configuration_adds_and_corrects() {
        let own = |it: config::Model| BTreeMap::from([("gpt-4o".to_owned(), it.clone()), ("mine".to_owned(), it)]);
        let plain = listed("gpt-4o");
        assert_eq!(known("gpt-4o", &BTreeMap::new()), plain);
        let window = own(config::Model {
            window: Some(7),
            images: Some(false),
            price_cached: Some(0.25),
            ..config::Model::default()
        });
        let found = known("gpt-4o", &window);
        assert_eq!(
            (found.window, found.images, found.tools),
            (Some(7), Some(false), plain.tools)
        );
        assert_eq!(found.prices.and_then(|it| it.cached), Some(0.25));
        assert_eq!(known("mine", &window).prices, None, "half a price is none");
        let priced = own(config::Model {
            price_in: Some(0.0),
            price_out: Some(1.0),
            ..config::Model::default()
        });
        let want = Prices {
            input: 0.0,
            output: 1.0,
            cached: None,
            written: None,
            long: None,
        };
        assert_eq!(
            (known("gpt-4o", &priced).prices, known("mine", &priced).prices),
            (Some(want), Some(want))
        );
    }
}

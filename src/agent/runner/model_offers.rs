//! The models of all providers that have a key, for the picker.

use std::{sync::Arc, time::Duration};

use futures::future;

use super::setup::Setup;
use crate::{
    config::{KnownService, Settings},
    models::{Model, Provider, catalogue},
    protocol::{ModelOffer, ModelOffers},
};

/// Time limit for each provider's list.
pub const LIMIT: Duration = Duration::from_secs(8);

/// Maximum number of models of one provider.
const MOST: usize = 1000;

/// A provider that is asked.
struct Asked {
    name: String,
    title: String,
    provider: Arc<dyn Provider>,
    is_own: bool,
    /// Text in front of an id that chooses one of its models.
    prefix: String,
}

/// Asks all usable providers at once. Takes at most [`LIMIT`].
pub fn find(setup: &Setup) -> impl Future<Output = ModelOffers> + Send + use<> {
    let mut problems = Vec::new();
    let mut asked = vec![own(setup)];
    for name in setup
        .roles
        .usable()
        .into_iter()
        .filter(|it| setup.roles.own() != Some(it))
    {
        let title = KnownService::named(name).map_or(name, |it| it.title).to_owned();
        match setup.roles.provider(name) {
            Ok(provider) => asked.push(Asked {
                prefix: format!("{name}{}", if setup.roles.is_provider(name) { "/" } else { "//" }),
                name: name.to_owned(),
                title,
                provider,
                is_own: false,
            }),
            Err(failure) => problems.push(format!("{title}: {}", failure.message)),
        }
    }
    let (settings, roles) = (Arc::clone(&setup.settings), Arc::clone(&setup.roles));
    async move {
        let lists = asked.iter().map(|it| tokio::time::timeout(LIMIT, it.provider.models()));
        let lists = future::join_all(lists).await;
        let mut listed = Vec::new();
        for (it, list) in asked.into_iter().zip(lists) {
            match list {
                Ok(Ok(models)) => listed.push((it, models)),
                Ok(Err(failure)) => problems.push(format!("{}: {}", it.title, failure.message)),
                Err(_) => problems.push(format!("{}: no answer within {} s", it.title, LIMIT.as_secs())),
            }
        }
        // The catalogue is searched for each of maybe a thousand models.
        let offers = tokio::task::spawn_blocking(move || {
            let is_provider = |it: &str| roles.is_provider(it);
            let offers = listed
                .into_iter()
                .flat_map(|(asked, models)| offers(&asked, models, &settings, &is_provider));
            offers.collect()
        });
        ModelOffers {
            models: offers.await.unwrap_or_default(),
            problems,
        }
    }
}

/// The provider that answers where a message names none.
fn own(setup: &Setup) -> Asked {
    let name = setup.roles.own().unwrap_or_default().to_owned();
    let title = KnownService::named(&name).map_or(name.as_str(), |it| it.title);
    Asked {
        title: if title.is_empty() { setup.provider.peer() } else { title }.to_owned(),
        name,
        provider: Arc::clone(&setup.provider),
        is_own: true,
        prefix: String::new(),
    }
}

/// Returns the offers of one provider: first the models that are known to call tools, in the order of its list.
fn offers(
    asked: &Asked,
    models: Vec<Model>,
    settings: &Settings,
    is_provider: &dyn Fn(&str) -> bool,
) -> Vec<ModelOffer> {
    let mut offers: Vec<(bool, ModelOffer)> = models
        .into_iter()
        .take(MOST)
        .map(|Model { id, window, .. }| {
            let known = catalogue::known(&id, &settings.models);
            let is_ambiguous = asked.is_own && id.split_once('/').is_some_and(|(it, _)| is_provider(it));
            let prefix = if is_ambiguous {
                format!("{}//", asked.name)
            } else {
                asked.prefix.clone()
            };
            let offer = ModelOffer {
                name: format!("{prefix}{id}"),
                provider: asked.title.clone(),
                is_own: asked.is_own,
                window: window.or(known.window),
                price: known.prices.map(|it| (thousandths(it.input), thousandths(it.output))),
                has_effort: known.reasoning == Some(true),
                id,
            };
            (known.tools != Some(true), offer)
        })
        .collect();
    offers.sort_by_key(|it| it.0);
    offers.into_iter().map(|it| it.1).collect()
}

fn thousandths(dollars: f64) -> u64 {
    (dollars * 1000.0).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    struct Nobody;

    impl Provider for Nobody {
        fn peer(&self) -> &'static str {
            "nobody"
        }

        fn stream(&self, _: models::ModelRequest) -> models::PieceStream {
            Box::pin(futures::stream::empty())
        }

        fn warm(&self) -> models::Promise<()> {
            Box::pin(future::ready(()))
        }

        fn models(&self) -> models::Promise<Result<Vec<Model>, models::Failure>> {
            Box::pin(future::ready(Ok(Vec::new())))
        }
    }

    #[test]
    fn a_name_says_which_provider_is_meant_where_that_is_not_plain() {
        let is_provider = |it: &str| it == "anthropic";
        let named = |name: &str, prefix: &str, is_own, ids: &[&str]| {
            let asked = Asked {
                name: name.to_owned(),
                title: name.to_owned(),
                provider: Arc::new(Nobody),
                is_own,
                prefix: prefix.to_owned(),
            };
            let models = ids.iter().map(|it| Model {
                id: (*it).to_owned(),
                ..Model::default()
            });
            let offers = offers(&asked, models.collect(), &Settings::default(), &is_provider);
            offers.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(
            named("openrouter", "", true, &["anthropic/claude-sonnet-5", "qwen/own"]),
            ["openrouter//anthropic/claude-sonnet-5", "qwen/own"]
        );
        assert_eq!(
            named("openai", "openai/", false, &["whisper-1", "gpt-5.4"]),
            ["openai/gpt-5.4", "openai/whisper-1"],
            "a model that calls tools is first"
        );
        assert_eq!(named("anthropic", "anthropic//", false, &["a"]), ["anthropic//a"]);
    }

    #[test]
    fn what_the_choice_depends_on_comes_from_the_catalogue() {
        let asked = Asked {
            name: "openai".to_owned(),
            title: "OpenAI".to_owned(),
            provider: Arc::new(Nobody),
            is_own: true,
            prefix: String::new(),
        };
        let model = Model {
            id: "gpt-4o".to_owned(),
            ..Model::default()
        };
        let found = offers(&asked, vec![model], &Settings::default(), &|_| false);
        let wanted = ModelOffer {
            name: "gpt-4o".to_owned(),
            id: "gpt-4o".to_owned(),
            provider: "OpenAI".to_owned(),
            is_own: true,
            window: Some(128_000),
            price: Some((2500, 10_000)),
            has_effort: false,
        };
        assert_eq!(found, [wanted]);
    }
}

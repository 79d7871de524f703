//! Checks the sandbox of a model's commands.

use super::{Check, Topic};
use crate::sandbox::{Layers, Tier, layers};

pub(super) fn examine() -> Vec<Check> {
    judge(layers())
}

/// Judges the sandbox. A partial one is a warning: commands ask first.
fn judge(layers: &Layers) -> Vec<Check> {
    let topic = Topic::Sandbox;
    let whole = match layers.tier {
        Tier::Full => Check::good(topic, "commands", "sandbox full"),
        Tier::Partial => Check::doubtful(
            topic,
            "commands",
            &format!("sandbox partial ({}): every command asks", layers.why),
            "",
        ),
        Tier::None => Check::doubtful(
            topic,
            "commands",
            &format!("NO SANDBOX: {}; every command asks", layers.why),
            "",
        ),
    };
    let each = layers.list.iter().map(|it| {
        if it.holds {
            Check::good(topic, it.name, &it.about)
        } else {
            Check::doubtful(topic, it.name, &it.about, &it.remedy)
        }
    });
    std::iter::once(whole).chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::CheckVerdict, *};
    use crate::sandbox::Layer;

    #[test]
    fn a_missing_wall_is_named_with_its_remedy() {
        let layer = |name, holds, remedy: &str| Layer {
            name,
            holds,
            means: None,
            about: "about it".to_owned(),
            remedy: remedy.to_owned(),
        };
        let layers = Layers {
            tier: Tier::Partial,
            wraps: false,
            why: "metadata".to_owned(),
            list: vec![layer("files", false, "sysctl x=1"), layer("landlock", true, "")],
        };
        let checks = judge(&layers);
        let verdicts: Vec<_> = checks.iter().map(|it| it.verdict).collect();
        assert_eq!(
            verdicts,
            [CheckVerdict::Doubtful, CheckVerdict::Doubtful, CheckVerdict::Good]
        );
        assert!(checks[0].seen.contains("partial (metadata)"));
        assert_eq!(checks[1].remedy.as_str(), "sysctl x=1");
    }
}

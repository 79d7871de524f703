//! The options of programs that reach servers, as far as they lead to no other server and run nothing.

use super::address::{Bare, Form};
use crate::text::WordList;

/// A program of which it is known how it names servers.
pub(super) struct Known {
    pub program: &'static str,
    pub form: Form,
    /// Letters of options without a value, and of those that have one, in the same word or in the next.
    flags: &'static str,
    valued: &'static str,
    /// The same as words.
    long_flags: WordList,
    long_valued: WordList,
}

pub(super) const GIT: Form = Form {
    schemes: WordList("git git+ssh http https ssh ssh+git"),
    bare: Bare::Git,
};
const WEB: Form = Form {
    schemes: WordList("http https"),
    bare: Bare::Web,
};

pub(super) const KNOWN: [Known; 5] = [
    Known {
        program: "curl",
        form: WEB,
        flags: "#46GIJLNOSfgiksv",
        valued: "AFHTXbcdemoruw",
        long_flags: WordList(
            "--compressed --fail --fail-with-body --get --globoff --head --http1.1 --http2 --include --insecure --ipv4 --ipv6 --location
             --no-buffer --no-progress-meter --progress-bar --remote-name --show-error --silent --verbose",
        ),
        long_valued: WordList(
            "--connect-timeout --cookie --data --data-binary --data-raw --data-urlencode --form --header --json --max-time --output
             --request --retry --retry-delay --upload-file --user --user-agent --write-out",
        ),
    },
    Known {
        program: "wget",
        form: WEB,
        flags: "46NSbcqv",
        valued: "OPTUot",
        long_flags: WordList(
            "--continue --no-check-certificate --no-clobber --no-verbose --quiet --server-response --show-progress --spider
             --timestamping -nc -nv",
        ),
        long_valued: WordList(
            "--directory-prefix --header --output-document --output-file --timeout --tries --user-agent",
        ),
    },
    Known {
        program: "ssh",
        form: Form {
            schemes: WordList("ssh"),
            bare: Bare::Login,
        },
        flags: "46ACNTXYaknqtvx",
        valued: "bceilmp",
        long_flags: WordList(""),
        long_valued: WordList(""),
    },
    Known {
        program: "scp",
        form: Form {
            schemes: WordList("scp"),
            bare: Bare::Path,
        },
        flags: "346BCOTpqrv",
        valued: "Pcil",
        long_flags: WordList(""),
        long_valued: WordList(""),
    },
    Known {
        program: "rsync",
        form: Form {
            schemes: WordList("rsync"),
            bare: Bare::Path,
        },
        flags: "ADHILPRSWXacghilnopqrtuvxz",
        valued: "",
        long_flags: WordList(
            "--archive --checksum --compress --delete --delete-after --dry-run --human-readable --itemize-changes --partial --progress
             --recursive --stats --update --verbose",
        ),
        long_valued: WordList("--bwlimit --chmod --exclude --exclude-from --include --info --max-size"),
    },
];

/// Commands of git that talk to one remote, the first of their words.
pub(super) const GIT_COMMANDS: [Known; 5] = [
    Known {
        program: "clone",
        form: GIT,
        flags: "lnqv",
        valued: "bjo",
        long_flags: WordList(
            "--bare --mirror --no-checkout --no-single-branch --no-tags --progress --quiet --single-branch --sparse --verbose",
        ),
        long_valued: WordList("--branch --depth --filter --jobs --origin --shallow-since"),
    },
    Known {
        program: "fetch",
        form: GIT,
        flags: "afknpqtv",
        valued: "",
        long_flags: WordList(
            "--append --atomic --dry-run --force --no-recurse-submodules --no-tags --progress --prune --quiet --tags --unshallow --verbose",
        ),
        long_valued: WordList("--deepen --depth --filter --shallow-since"),
    },
    Known {
        program: "ls-remote",
        form: GIT,
        flags: "bhqt",
        valued: "",
        long_flags: WordList("--branches --exit-code --heads --quiet --refs --symref --tags"),
        long_valued: WordList("--sort"),
    },
    Known {
        program: "pull",
        form: GIT,
        flags: "fnqrv",
        valued: "",
        long_flags: WordList(
            "--autostash --dry-run --ff --ff-only --force --no-edit --no-ff --no-rebase --no-recurse-submodules --no-verify --progress --prune --quiet --rebase --squash
             --tags --verbose",
        ),
        long_valued: WordList("--depth"),
    },
    Known {
        program: "push",
        form: GIT,
        flags: "46dfnquv",
        valued: "",
        long_flags: WordList(
            "--all --atomic --delete --dry-run --follow-tags --force --force-if-includes --force-with-lease --no-verify --porcelain
             --progress --prune --quiet --set-upstream --tags --verbose",
        ),
        long_valued: WordList(""),
    },
];

impl Known {
    /// The words that are no options; `None` if an option is not known.
    pub(super) fn arguments<'a>(&self, mut words: &[&'a str]) -> Option<Vec<&'a str>> {
        let mut found = Vec::new();
        loop {
            words = self.behind_options(words)?;
            let Some((first, rest)) = words.split_first() else {
                return Some(found);
            };
            found.push(*first);
            words = rest;
        }
    }

    /// The words behind the options in front; `None` if an option is not known.
    pub(super) fn behind_options<'a, 'b>(&self, mut words: &'b [&'a str]) -> Option<&'b [&'a str]> {
        while let Some((word, rest)) = words.split_first()
            && word.starts_with('-')
        {
            let takes_next = self.takes_next(word)?;
            words = rest.get(usize::from(takes_next)..).unwrap_or_default();
        }
        Some(words)
    }

    /// Returns true if the value of an option is the next word; `None` if it is not known.
    fn takes_next(&self, option: &str) -> Option<bool> {
        let (name, value) = option.split_once('=').map_or((option, None), |it| (it.0, Some(it.1)));
        if self.long_flags.contains(option) {
            return Some(false);
        }
        if self.long_valued.contains(name) {
            return Some(value.is_none());
        }
        let mut letters = option.strip_prefix('-')?.chars();
        let mut letter = letters.next()?;
        while self.flags.contains(letter) {
            let Some(next) = letters.next() else { return Some(false) };
            letter = next;
        }
        self.valued.contains(letter).then_some(letters.as_str().is_empty())
    }
}

//! Places for servers: each is started where it is needed, and ended when it is idle, too large, or one too many.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{catalogue::Found, server::Server};
use crate::sandbox::{Service, ServiceSpec, Workspace};

/// A server that nobody has asked for so long ends.
const IDLE: Duration = Duration::from_mins(15);
/// A server that ends so often in [`DEATHS_WITHIN`] is not started again.
const MOST_DEATHS: usize = 3;
const DEATHS_WITHIN: Duration = Duration::from_mins(5);
/// Servers that run at a time. For another one, the one that was asked longest ago ends.
const MOST_RUNNING: usize = 4;
/// A server that was asked within this time does not end for another one.
const IN_USE: Duration = Duration::from_secs(5);
/// A server that holds more memory is ended.
const MEMORY_BYTES: u64 = 4 << 30;
/// Pause between looks at the memory of a server that runs.
const MEMORY_PAUSE: Duration = Duration::from_secs(10);
/// Time that a server has to end once it was asked to.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Name and folder of a server.
pub type ServerKey = (String, PathBuf);

/// The key of a server.
pub fn key(found: &Found) -> ServerKey {
    (found.name.clone(), found.root.clone())
}

/// A server that is starting or has started: `None`: it has not answered yet. Error: it never will.
pub type Started = watch::Receiver<Option<Result<Arc<Server>, String>>>;

/// The servers of a workspace.
#[derive(Default)]
pub struct Slots(BTreeMap<ServerKey, Slot>);

/// A place for a server.
#[derive(Default)]
struct Slot {
    server: Option<Running>,
    /// When it ended by itself, the newest last.
    deaths: Vec<Instant>,
    /// Why the last one has ended, or did not start.
    why: String,
    used: Option<Instant>,
}

/// A server that was started.
struct Running {
    started: Started,
    since: Instant,
    /// Dropped, it ends the service.
    _alive: oneshot::Sender<()>,
}

impl Slots {
    /// The server, which starts unless it runs, and the time when it started. Error: why there is none. Waits for nothing.
    pub fn server(&mut self, workspace: &Arc<Workspace>, found: &Found) -> Result<(Started, Instant), String> {
        let slot = self.0.entry(key(found)).or_default();
        slot.used = Some(Instant::now());
        slot.bury();
        let recent = |it: &&Instant| it.elapsed() < DEATHS_WITHIN;
        if slot.server.is_none() {
            if slot.deaths.iter().filter(recent).count() >= MOST_DEATHS {
                return Err(format!("it has ended {MOST_DEATHS} times ({})", slot.why));
            }
            self.make_room()?;
            let slot = self.0.entry(key(found)).or_default();
            slot.server = Some(spawn(open(Arc::clone(workspace), found.clone())));
        }
        let running = self.0.get(&key(found)).and_then(|it| it.server.as_ref());
        let running = running.map(|it| (it.started.clone(), it.since));
        running.ok_or_else(|| "it has ended".to_owned())
    }

    /// Ends the server that was asked longest ago, if as many run as may. Error: all are in use.
    fn make_room(&mut self) -> Result<(), String> {
        let running = self.0.values_mut().filter(|it| it.server.is_some());
        let running: Vec<&mut Slot> = running.collect();
        if running.len() < MOST_RUNNING {
            return Ok(());
        }
        let oldest = running.into_iter().min_by_key(|it| it.used);
        let is_free = |it: &&mut Slot| it.used.is_none_or(|it| it.elapsed() >= IN_USE);
        let oldest = oldest.filter(is_free);
        let oldest = oldest.ok_or_else(|| format!("{MOST_RUNNING} others are in use"))?;
        tokio::spawn(oldest.end());
        Ok(())
    }

    /// The servers that have answered.
    pub fn started(&self) -> impl Iterator<Item = Arc<Server>> {
        let running = self.0.values().filter_map(|it| it.server.as_ref());
        running.filter_map(|it| it.started.borrow().clone()?.ok())
    }

    /// Takes note of a server that does not work.
    pub fn bury(&mut self, key: &ServerKey) {
        if let Some(slot) = self.0.get_mut(key) {
            slot.bury();
        }
    }

    /// When the first server has been idle for long enough; `None`: none runs.
    pub fn idle_at(&self) -> Option<Instant> {
        let running = self.0.values().filter(|it| it.server.is_some());
        running.filter_map(|it| it.used).min().map(|it| it + IDLE)
    }

    /// Ends those that have been idle for long enough.
    pub fn end_idle(&mut self) {
        for slot in self.0.values_mut() {
            if slot.used.is_some_and(|it| it.elapsed() >= IDLE) {
                tokio::spawn(slot.end());
            }
        }
    }

    /// Ends all; the returned future ends when they have been asked to.
    pub fn end_all(&mut self) -> impl Future<Output = ()> + use<> {
        let ends: Vec<_> = self.0.values_mut().map(Slot::end).collect();
        async move { drop(futures::future::join_all(ends).await) }
    }
}

impl Slot {
    /// Takes note of a server that has ended by itself.
    fn bury(&mut self) {
        let Some(running) = &self.server else { return };
        let why = match &*running.started.borrow() {
            None => return,
            Some(Ok(server)) => server.over(),
            Some(Err(why)) => Some(why.clone()),
        };
        if let Some(why) = why {
            self.deaths.push(Instant::now());
            let surplus = self.deaths.len().saturating_sub(MOST_DEATHS);
            self.deaths.drain(..surplus);
            self.why = why;
            self.server = None;
        }
    }

    /// Empties the place; the returned future ends when the server has been asked to end.
    fn end(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let running = self.server.take();
        async move {
            let server = running.as_ref().and_then(|it| it.started.borrow().clone());
            if let Some(Ok(server)) = server {
                server.shut_down(LAST_PATIENCE).await;
            }
            drop(running);
        }
    }
}

/// Starts the server that `opening` gives. Waits for nothing.
fn spawn(opening: impl Future<Output = Result<(Server, Service), String>> + Send + 'static) -> Running {
    let (tell, started) = watch::channel(None);
    let (alive, mut is_dropped) = oneshot::channel();
    tokio::spawn(async move {
        // One that has not answered yet ends with its place, too.
        let opened = tokio::select! {
            _ = &mut is_dropped => return,
            opened = opening => opened,
        };
        match opened {
            Ok((server, mut service)) => {
                let server = Arc::new(server);
                tell.send_replace(Some(Ok(Arc::clone(&server))));
                let mut memory = tokio::time::interval(MEMORY_PAUSE);
                loop {
                    tokio::select! {
                        _ = &mut is_dropped => break,
                        _ = memory.tick() => if service.resident() > MEMORY_BYTES {
                            server.give_up("it took more than 4 GiB of memory");
                            break;
                        },
                        how = service.ended() => {
                            server.give_up(&format!("it has ended ({how})"));
                            break;
                        }
                    }
                }
                // Its input is closed with the last of these.
                tell.send_modify(|it| *it = Some(Err(server.over().unwrap_or_default())));
                drop(server);
                service.end().await;
            }
            Err(why) => {
                tell.send_replace(Some(Err(why)));
            }
        }
    });
    Running {
        started,
        since: Instant::now(),
        _alive: alive,
    }
}

async fn open(workspace: Arc<Workspace>, found: Found) -> Result<(Server, Service), String> {
    let spec = ServiceSpec {
        program: found.program.to_string_lossy().into_owned(),
        arguments: found.arguments.clone(),
        directory: found.root.clone(),
        variables: found.variables.clone(),
        network: false,
        folders: Vec::new(),
        has_own_cache: true,
    };
    let started = tokio::task::spawn_blocking(move || workspace.commands().serve(spec)).await;
    let started = started.map_err(|it| it.to_string())?;
    let (service, streams) = started.map_err(|it| it.to_string())?;
    let server = Server::start(&found, streams.input, streams.output, streams.errors).await?;
    Ok((server, service))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// Starts a server that cannot be: there is no such program.
    fn found(name: &str) -> Found {
        Found {
            name: name.to_owned(),
            root: "/".into(),
            program: "/absent".into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            initialization: serde_json::Value::Null,
            tells_when_ready: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_four_run_and_the_one_that_was_asked_longest_ago_ends() {
        let top = tempfile::tempdir().expect("a folder");
        let workspace = Arc::new(Workspace::open(top.path()).expect("a workspace"));
        let mut slots = Slots::default();
        let running = |slots: &Slots| {
            let running = slots.0.iter().filter(|it| it.1.server.is_some());
            running.map(|it| it.0.0.clone()).collect::<Vec<_>>()
        };
        for name in ["a", "b", "c", "d"] {
            assert!(slots.server(&workspace, &found(name)).is_ok());
        }
        let refused = slots.server(&workspace, &found("e")).map(drop);
        assert_eq!(refused, Err("4 others are in use".to_owned()));
        for slot in slots.0.values_mut() {
            slot.used = Some(Instant::now());
        }
        tokio::time::advance(IN_USE).await;
        for name in ["a", "c", "d"] {
            if let Some(slot) = slots.0.get_mut(&key(&found(name))) {
                slot.used = Some(Instant::now());
            }
        }
        assert!(slots.server(&workspace, &found("e")).is_ok());
        assert_eq!(running(&slots), ["a", "c", "d", "e"]);
    }

    #[tokio::test]
    async fn a_server_that_is_starting_ends_with_its_place() {
        let (alive, is_dropped) = oneshot::channel::<()>();
        let running = spawn(async move {
            let _alive = alive;
            std::future::pending().await
        });
        let mut slot = Slot {
            server: Some(running),
            ..Slot::default()
        };
        tokio::task::yield_now().await;
        slot.end().await;
        let ended = tokio::time::timeout(Duration::from_secs(20), is_dropped).await;
        assert!(ended.is_ok_and(|it| it.is_err()), "nothing of it is left");
    }
}

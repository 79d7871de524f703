//! The images of the conversation on their way to the terminal: which are in view, and what is missing to draw them.

use std::{collections::hash_map::Entry, sync::Arc};

use super::{App, Effect};
use crate::tui::{
    image::{KEPT_BYTES, Made, ReadImage, number, pictures, read_picture},
    terminal::{ImageProtocol, ImageSetting, TerminalName, pictures::ASK_CELL_SIZE},
    widgets::transcript::{Item, VisibleLine},
};

impl App {
    /// The terminal has said by which name it goes.
    pub fn terminal_is(&mut self, named: TerminalName) {
        match named {
            TerminalName::Draws(way) => self.draws_by(way),
            TerminalName::Between if self.terminal.images.wish == ImageSetting::Auto => {
                self.terminal.images.wish = ImageSetting::Off;
            }
            TerminalName::Between | TerminalName::Other => {}
        }
    }

    /// The terminal has said how it draws; the first word counts.
    pub fn draws_by(&mut self, way: ImageProtocol) {
        if self.terminal.images.wish == ImageSetting::Auto && self.terminal.images.way.is_none() {
            self.terminal.images.way = Some(way);
            if !self.terminal.images.is_on() {
                // Not all terminals say so without being asked.
                self.terminal.pending.extend_from_slice(ASK_CELL_SIZE);
            }
            self.forget_pictures();
        }
    }

    /// The terminal has said how large a cell is.
    pub fn cells_are(&mut self, cell: Option<(u16, u16)>) {
        if cell.is_some() && self.terminal.images.cell != cell {
            self.terminal.images.cell = cell;
            self.forget_pictures();
        }
    }

    /// Rows with pictures are made again.
    fn forget_pictures(&mut self) {
        let (transcript, images) = (&self.conversation.transcript, &self.terminal.images);
        self.viewport.pane.forget_all(|item| match item {
            Item::Message(at) => {
                let message = transcript.exchanges.get(at).and_then(|it| it.message.as_ref());
                message.is_some_and(|it| pictures(it).next().is_some())
            }
            Item::Document(place) => {
                let exchange = transcript.exchanges.get(place.exchange);
                let document = transcript.get(place);
                !images.read.is_empty()
                    && exchange
                        .zip(document)
                        .is_some_and(|it| images.read.contains_key(&(it.0.turn, it.1.id.clone())))
            }
            Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => false,
        });
    }

    /// An order was carried out, or cannot be.
    pub fn take_picture(&mut self, id: u32, made: Option<Made>) {
        self.terminal.images.take_made(id, made);
        self.forget_pictures();
    }

    /// The items in view, each once.
    fn items_in_view(&self) -> Vec<Item> {
        let mut items: Vec<Item> = self.viewport.pane.lines.iter().filter_map(VisibleLine::item).collect();
        items.dedup();
        items
    }

    /// Gives the terminal the pictures that are in view. Nothing is done for a conversation without any.
    pub fn send_images(&mut self) {
        if self.terminal.images.way == Some(ImageProtocol::Kitty) {
            let mut room = KEPT_BYTES;
            for item in self.items_in_view() {
                self.send_images_of(item, &mut room);
            }
        }
    }

    /// Gives the terminal the pictures of an item.
    pub fn send_images_of(&mut self, item: Item, room: &mut usize) {
        let width = self.viewport.areas.content();
        match item {
            Item::Message(at) => {
                let exchange = self.conversation.transcript.exchanges.get(at);
                if let Some(message) = exchange.and_then(|it| it.message.as_ref()) {
                    self.terminal.images.send(pictures(message), width, room);
                }
            }
            Item::Document(_) => {
                if let Some(data) = self.data_of(item) {
                    self.terminal.images.send(std::iter::once(&*data), width, room);
                }
            }
            Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => {}
        }
    }

    /// The image that a tool has read.
    fn data_of(&self, item: Item) -> Option<Arc<str>> {
        let Item::Document(place) = item else { return None };
        if self.terminal.images.read.is_empty() {
            return None;
        }
        let document = self.conversation.transcript.get(place)?;
        match self
            .terminal
            .images
            .read
            .get(&(self.conversation.turn_of(place), document.id.clone()))
        {
            Some(ReadImage::Data(data)) => Some(Arc::clone(data)),
            Some(ReadImage::Asked | ReadImage::Missing) | None => None,
        }
    }

    /// The effects that read and prepare the images in view, and those of `more`.
    pub fn pictures_wanted(&mut self, more: Option<Item>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.terminal.images.is_on() {
            return effects;
        }
        let width = self.viewport.areas.content();
        let mut in_view = std::mem::take(&mut self.terminal.images.in_view);
        in_view.clear();
        for item in self.items_in_view().into_iter().chain(more) {
            if let Some(effect) = self.picture_to_read(item) {
                effects.push(effect);
            }
            let mut order = None;
            let mut look = |data: &str| {
                in_view.push(number(data));
                if order.is_none() && !self.terminal.images.is_making {
                    order = self.terminal.images.order(data, width);
                }
            };
            match item {
                Item::Message(at) => {
                    let exchange = self.conversation.transcript.exchanges.get(at);
                    let message = exchange.and_then(|it| it.message.as_ref());
                    message.into_iter().flat_map(pictures).for_each(&mut look);
                }
                Item::Document(_) => {
                    if let Some(data) = self.data_of(item) {
                        look(&data);
                    }
                }
                Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => {}
            }
            if let Some(order) = order {
                self.terminal.images.is_making = true;
                effects.push(Effect::MakePicture(order));
            }
        }
        self.terminal.images.in_view = in_view;
        effects
    }

    /// Returns true if all of an item's images are there or failed.
    pub fn has_pictures(&self, item: Item) -> bool {
        if !self.terminal.images.is_on() {
            return true;
        }
        let width = self.viewport.areas.content();
        let is_there = |data: &str| self.terminal.images.awaited(data, width).is_none();
        match item {
            Item::Message(at) => {
                let message = self
                    .conversation
                    .transcript
                    .exchanges
                    .get(at)
                    .and_then(|it| it.message.as_ref());
                message.into_iter().flat_map(pictures).all(is_there)
            }
            Item::Document(place) => {
                let Some(document) = self
                    .conversation
                    .transcript
                    .get(place)
                    .filter(|it| read_picture(it).is_some())
                else {
                    return true;
                };
                match self
                    .terminal
                    .images
                    .read
                    .get(&(self.conversation.turn_of(place), document.id.clone()))
                {
                    None | Some(ReadImage::Asked) => false,
                    Some(ReadImage::Missing) => true,
                    Some(ReadImage::Data(data)) => is_there(data),
                }
            }
            Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => true,
        }
    }

    /// A picture that a tool has read and that was not looked at yet.
    fn picture_to_read(&mut self, item: Item) -> Option<Effect> {
        let Item::Document(place) = item else { return None };
        let document = self.conversation.transcript.get(place)?;
        let path = read_picture(document)?;
        let key = (self.conversation.turn_of(place), document.id.clone());
        let Entry::Vacant(free) = self.terminal.images.read.entry(key) else {
            return None;
        };
        let (turn, document) = free.key().clone();
        let path = path.to_owned();
        free.insert(ReadImage::Asked);
        Some(Effect::ReadPicture { turn, document, path })
    }
}

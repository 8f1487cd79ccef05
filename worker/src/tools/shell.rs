//! A shell command as a tree, and from it the simple commands that it would run, wherever they stand: in lists, pipelines,
//! substitutions, functions and the strings that are given to another shell.

use tree_sitter::{Node, Parser};

/// How deep commands in strings are followed (`sh -c "sh -c '…'"`).
const DEPTH_MAX: u8 = 4;

/// One command with its words, quotes removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// The words; `None` for what only the run will tell (`$x`, `$(…)`).
    pub(super) words: Vec<Option<String>>,
    /// Where its output or another file is redirected to.
    pub(super) writes: Vec<String>,
    /// The files that it reads by redirection.
    pub(super) reads: Vec<String>,
    /// The commands whose output flows into it, nearest last.
    pub(super) fed_by: Vec<String>,
}

/// What a command line would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// All commands, in order of appearance.
    pub(super) commands: Vec<Simple>,
    /// The functions that call themselves.
    pub(super) recursive: Vec<String>,
    /// Whether some of it could not be understood.
    pub(super) unclear: bool,
}

impl Script {
    /// Parses a command line.
    pub(super) fn parse(text: &str) -> Self {
        let mut script = Self::default();
        script.read(text, 0, &[]);
        script
    }

    fn read(&mut self, text: &str, depth: u8, fed_by: &[String]) {
        let mut parser = Parser::new();
        let language = tree_sitter_bash::LANGUAGE.into();
        let tree = parser.set_language(&language).ok().and_then(|()| parser.parse(text, None));
        let Some(tree) = tree.filter(|_| depth < DEPTH_MAX) else {
            self.unclear = true;
            return;
        };
        self.unclear |= tree.root_node().has_error();
        Walk { text, depth, script: self }.node(tree.root_node(), fed_by);
    }
}

struct Walk<'a> {
    text: &'a str,
    depth: u8,
    script: &'a mut Script,
}

impl Walk<'_> {
    fn node(&mut self, node: Node<'_>, fed_by: &[String]) {
        match node.kind() {
            "command" => self.command(node, fed_by, &[]),
            "pipeline" => self.pipeline(node, fed_by),
            "redirected_statement" => self.redirected(node, fed_by),
            "function_definition" => self.function(node),
            _ => self.children(node, fed_by),
        }
    }

    fn children(&mut self, node: Node<'_>, fed_by: &[String]) {
        for index in 0..node.named_child_count() {
            if let Some(child) = child(node, index) {
                self.node(child, fed_by);
            }
        }
    }

    fn pipeline(&mut self, node: Node<'_>, fed_by: &[String]) {
        let mut feeding = fed_by.to_vec();
        for index in 0..node.named_child_count() {
            let Some(stage) = child(node, index) else { continue };
            let before = self.script.commands.len();
            self.node(stage, &feeding);
            let names = self.script.commands[before..].iter().filter_map(|command| {
                command.words.first().and_then(Option::as_deref).map(base).map(str::to_owned)
            });
            feeding.extend(names.collect::<Vec<_>>());
        }
    }

    fn redirected(&mut self, node: Node<'_>, fed_by: &[String]) {
        let body = node.child_by_field_name("body");
        let redirects: Vec<Node<'_>> = (0..node.named_child_count())
            .filter_map(|index| child(node, index))
            .filter(|child| Some(child.id()) != body.map(|body| body.id()))
            .collect();
        match body {
            Some(body) if body.kind() == "command" => self.command(body, fed_by, &redirects),
            Some(body) => {
                self.node(body, fed_by);
                self.command(node, fed_by, &redirects);
            }
            None => self.command(node, fed_by, &redirects),
        }
    }

    /// A command with redirections of its own and of the statement round it.
    fn command(&mut self, node: Node<'_>, fed_by: &[String], redirects: &[Node<'_>]) {
        let mut simple = Simple { fed_by: fed_by.to_vec(), ..Simple::default() };
        let own: Vec<Node<'_>> = match node.kind() {
            "command" => (0..node.named_child_count()).filter_map(|i| child(node, i)).collect(),
            _ => Vec::new(),
        };
        let mut inner = Vec::new();
        for part in own.iter().chain(redirects) {
            match part.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    self.redirect(*part, &mut simple);
                }
                "variable_assignment" => {}
                "command_name" => simple.words.push(self.word(child(*part, 0).unwrap_or(*part))),
                _ => simple.words.push(self.word(*part)),
            }
            inner.push(*part);
        }
        let strings = simple.scripts();
        if !simple.words.is_empty() || !simple.writes.is_empty() || !simple.reads.is_empty() {
            self.script.commands.push(simple);
        }
        // Substitutions run before the command, but the order of the list does not matter.
        inner.into_iter().for_each(|part| self.children(part, &[]));
        for string in strings {
            match string {
                Some(text) => self.script.read(&text, self.depth + 1, fed_by),
                None => self.script.unclear = true,
            }
        }
    }

    fn redirect(&mut self, node: Node<'_>, simple: &mut Simple) {
        if node.kind() != "file_redirect" {
            return;
        }
        let operator = (0..node.child_count())
            .filter_map(|index| node.child(index))
            .find(|child| !child.is_named())
            .map_or("", |child| child.kind());
        let Some(to) = node.child_by_field_name("destination") else { return };
        let to = self.word(to).unwrap_or_default();
        if operator.starts_with('<') { simple.reads.push(to) } else { simple.writes.push(to) }
    }

    fn function(&mut self, node: Node<'_>) {
        let Some(body) = node.child_by_field_name("body") else { return };
        let name = node.child_by_field_name("name").map_or("", |name| self.source(name)).to_owned();
        let before = self.script.commands.len();
        self.node(body, &[]);
        let calls_itself = self.script.commands[before..].iter().any(|command| {
            command.words.first().is_some_and(|word| word.as_deref() == Some(&name))
        });
        if calls_itself {
            self.script.recursive.push(name);
        }
    }

    /// What a word will be, if that can be told without running anything.
    fn word(&self, node: Node<'_>) -> Option<String> {
        let source = self.source(node);
        match node.kind() {
            "word" | "number" | "regex" => Some(unescape(source)),
            "raw_string" => Some(source.trim_matches('\'').to_owned()),
            "ansi_c_string" => None,
            "string" => {
                let dynamic = (0..node.named_child_count())
                    .filter_map(|index| child(node, index))
                    .any(|part| part.kind() != "string_content");
                (!dynamic).then(|| unescape(source.trim_start_matches('"').trim_end_matches('"')))
            }
            "concatenation" => (0..node.named_child_count())
                .filter_map(|index| child(node, index))
                .map(|part| self.word(part))
                .collect(),
            // `$HOME` is known well enough to be judged.
            "simple_expansion" | "expansion" if source.trim_matches(['$', '{', '}']) == "HOME" => {
                Some("~".into())
            }
            _ if node.named_child_count() == 0 && !source.contains(['$', '`']) => {
                Some(source.to_owned())
            }
            _ => None,
        }
    }

    fn source(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }
}

impl Simple {
    /// The command lines in its arguments: `sh -c '…'` and `eval …`. `None` for one that only the run will tell.
    fn scripts(&self) -> Vec<Option<String>> {
        let mut words = self.words.iter().map(Option::as_deref);
        let at = words.position(|word| {
            word.is_some_and(|word| matches!(base(word), "eval") || is_shell(base(word)))
        });
        let Some(at) = at else { return Vec::new() };
        let rest = &self.words[at + 1..];
        if self.words[at].as_deref().map(base) == Some("eval") {
            let joined: Option<Vec<&str>> = rest.iter().map(Option::as_deref).collect();
            return vec![joined.map(|words| words.join(" "))];
        }
        let is_flag = |word: &Option<String>| {
            word.as_deref()
                .is_some_and(|w| w.starts_with('-') && !w.starts_with("--") && w.contains('c'))
        };
        match rest.iter().position(is_flag) {
            Some(flag) => rest.get(flag + 1).cloned().into_iter().collect(),
            None => Vec::new(),
        }
    }
}

/// Whether a command runs what it is given as a shell does.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish")
}

/// The last part of a path.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Removes the backslashes that the shell would remove.
fn unescape(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().filter(|next| *next != '\n')),
            c => out.push(c),
        }
    }
    out
}

fn child(node: Node<'_>, index: usize) -> Option<Node<'_>> {
    node.named_child(u32::try_from(index).ok()?)
}

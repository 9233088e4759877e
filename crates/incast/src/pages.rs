//! Numbers in Markdown pages: tables that `incast table` writes, and sentences with a claim that it checks.
//!
//! Both carry a mark, and the mark has the state of the bundled scenario that the numbers are of: `--check` compares it
//! with the scenario as it is, without running anything.

use crate::{
    End,
    arguments::TableStyle,
    bundled::{self, Head, Located},
    output,
};
use clap::Parser;
use incast_lab::{
    VERSION,
    results::{
        claims::{Status, judge},
        read::Summary,
    },
    run::{
        Plan, RunError,
        only::Only,
        state::{State, first_digests},
    },
    scenario::{Claim, Form, Scenario},
};
use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

/// A table stands between two marks, the scenario's name and the options in the first of them.
const TABLE: &str = "<!-- incast table ";
const END: &str = "<!-- end of table";
/// A claim stands behind its sentence: the scenario's name, and in braces what a `[[paper.claim]]` has.
const CLAIM: &str = "<!-- claim ";
const CLOSE: &str = "-->";
/// After a state: the page says itself that the numbers are stale, and since when.
const STALE: &str = ", stale since ";

/// Options in a page.
#[derive(Debug, Parser)]
#[command(name = "incast table", no_binary_name = true)]
struct InPage {
    /// Name of the scenario.
    scenario: String,
    /// What it shows.
    #[command(flatten)]
    style: TableStyle,
}

/// What a mark is for.
#[derive(Clone, Copy, Debug)]
enum What<'a> {
    /// A table with these options, the scenario's name among them.
    Table(&'a str),
    /// A claim, in braces.
    Claim(&'a str),
}

impl What<'_> {
    fn noun(self) -> &'static str {
        match self {
            Self::Table(_) => "table",
            Self::Claim(_) => "claim",
        }
    }

    /// What it is of: the scenario's state, and of a claim its own, so that one that was edited is judged again.
    fn state(self, scenario: &State) -> String {
        match self {
            Self::Table(_) => scenario.to_string(),
            Self::Claim(claim) => scenario.with(claim),
        }
    }
}

/// A table or a claim of a page.
#[derive(Clone, Debug)]
struct Mark<'a> {
    line: usize,
    /// From the first mark to the end of the last.
    span: Range<usize>,
    what: What<'a>,
    scenario: &'a str,
    /// The state of the scenario that it is of; empty if it has none.
    state: &'a str,
}

/// The tables and claims of a page, those in code left out.
fn marks(text: &str) -> Result<Vec<Mark<'_>>, String> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(begin) = [TABLE, CLAIM].iter().filter_map(|mark| text[from..].find(mark)).min().map(|at| from + at) {
        let before = &text[..begin];
        if before.lines().filter(|line| line.starts_with("```")).count() % 2 == 1 {
            // Code that shows what a mark looks like.
            from = begin + 1;
            continue;
        }
        let line = before.matches('\n').count() + 1;
        let mark = mark_at(text, begin, line).map_err(|message| format!("line {line}: {message}"))?;
        from = mark.span.end;
        found.push(mark);
    }
    Ok(found)
}

fn mark_at(text: &str, begin: usize, line: usize) -> Result<Mark<'_>, String> {
    let of = |mark: &str| text[begin..].starts_with(mark).then(|| begin + mark.len());
    let close = |from: usize| text[from..].find(CLOSE).map(|at| from + at);
    let word = |from: usize, to: usize| text[from..to].split_whitespace().next().unwrap_or_default();
    if let Some(inner) = of(CLAIM) {
        let end = close(inner).ok_or_else(|| format!("the comment has no {CLOSE}"))?;
        let body = &text[inner..end];
        let braces = body.find('{').zip(body.rfind('}'));
        let (open, shut) = braces.ok_or("the claim is not in braces")?;
        let state = body[shut + 1..].trim_start_matches(':').trim();
        let what = What::Claim(&body[open..=shut]);
        let scenario = text[inner..inner + open].trim();
        return Ok(Mark { line, span: begin..end + CLOSE.len(), what, scenario, state });
    }
    let inner = of(TABLE).unwrap_or(begin);
    let shut = close(inner).ok_or_else(|| format!("the comment has no {CLOSE}"))?;
    let end = text[shut..].find(END).map(|at| shut + at).ok_or_else(|| format!("the table has no {END} {CLOSE}"))?;
    if text[shut..end].contains(TABLE) {
        return Err(format!("another table begins before {END}"));
    }
    let last = close(end).ok_or_else(|| format!("the end of the table has no {CLOSE}"))?;
    let state = text[end + END.len()..last].trim_start_matches(':').trim();
    let what = What::Table(&text[inner..shut]);
    Ok(Mark { line, span: begin..last + CLOSE.len(), what, scenario: word(inner, shut), state })
}

/// A bundled scenario as it is now.
struct Bundled {
    /// As `incast run` knows it.
    name: String,
    full: Plan,
    state: State,
}

/// The bundled scenario that has this name in its head; `None` if there is none.
fn bundled(name: &str) -> Result<Option<Bundled>, RunError> {
    let mut scenarios = bundled::files().iter().filter(|(path, _)| path.ends_with(".toml"));
    let head = |content: &[u8]| Head::of(&String::from_utf8_lossy(content));
    let Some((path, _)) = scenarios.find(|(_, content)| head(content).name == name) else { return Ok(None) };
    let mut located = Located::default();
    let file = located.bundled(path)?;
    let plan = |form| Plan::new(Scenario::load_form(&file, &[], form)?, None, &Only::default());
    let full = plan(Form::Full)?;
    let state = State::of(&full, &plan(Form::Short)?)?;
    Ok(Some(Bundled { name: path.trim_end_matches(".toml").to_owned(), full, state }))
}

/// The state of these results. They have to be what this incast makes of the scenario as it is, as whoever reads the page
/// takes them for that. Results of another version are, if their first runs are the same.
fn state(summary: &Summary) -> Result<Option<State>, String> {
    let found = bundled(&summary.name).map_err(|error| error.to_string())?;
    let Some(Bundled { name, full, state }) = found else { return Ok(None) };
    let again = format!("run it again: incast run {name}");
    if !state.is_of(&summary.scenario_hash) {
        return Err(format!("the results are not of the bundled scenario as it is: {again}"));
    }
    if summary.version != VERSION {
        for first in first_digests(&full) {
            let (run, digest) = first.map_err(|error| error.to_string())?;
            if summary.digests.get(run) != Some(&digest) {
                return Err(format!("{run}: incast {VERSION} has another result than {}: {again}", summary.version));
            }
        }
    }
    Ok(Some(state))
}

/// The tables of a style, as Markdown.
type Render<'a> = &'a dyn Fn(&TableStyle) -> Result<String, String>;

/// Rewrites the tables of these results in pages, and checks the claims about them. All pages are made before any is
/// written.
pub fn update(summary: &Summary, paths: &[PathBuf], render: Render<'_>) -> End {
    let mut pages = Vec::new();
    let state = match state(summary) {
        Ok(state) => state,
        Err(message) => {
            output::error(&message);
            return End::BadInput;
        }
    };
    for path in paths {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
        match text.and_then(|text| rewritten(&text, summary, state.as_ref(), render)) {
            Ok(text) => pages.push((path, text)),
            Err(message) => {
                output::error(&format!("{}: {message}", path.display()));
                return End::BadInput;
            }
        }
    }
    for (path, (text, tables, claims)) in pages {
        if let Err(error) = write(path, &text) {
            output::error(&format!("{}: {error}", path.display()));
            return End::Failed;
        }
        output::data(&format!("{}: {}, {}\n", path.display(), count(tables, "table"), count(claims, "claim")));
    }
    End::Done
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    incast_lab::atomic::write(path, |file| std::io::Write::write_all(file, text.as_bytes()))
}

/// The page with the tables of these results made anew and the claims about them checked, and how many these are.
fn rewritten(
    text: &str,
    summary: &Summary,
    state: Option<&State>,
    render: Render<'_>,
) -> Result<(String, usize, usize), String> {
    let (mut page, mut at, mut tables, mut claims) = (String::new(), 0, 0, 0);
    for mark in marks(text)?.into_iter().filter(|mark| mark.scenario == summary.name) {
        let failed = |message: String| format!("line {}: {message}", mark.line);
        page.push_str(&text[at..mark.span.start]);
        at = mark.span.end;
        let state = state.map_or_else(String::new, |state| format!(": {}", mark.what.state(state)));
        match mark.what {
            What::Table(options) => {
                let style = InPage::try_parse_from(words(options));
                let style = style.map_err(|error| failed(error.to_string().trim_end().to_owned()))?.style;
                let made = render(&style).map_err(failed)?;
                page.push_str(&format!("{TABLE}{options}{CLOSE}\n\n{made}\n{END}{state} {CLOSE}"));
                tables += 1;
            }
            What::Claim(claim) => {
                holds(claim, summary).map_err(failed)?;
                page.push_str(&format!("{CLAIM}{} {claim}{state} {CLOSE}", mark.scenario));
                claims += 1;
            }
        }
    }
    page.push_str(&text[at..]);
    if tables + claims == 0 {
        return Err(format!("has no table of {0}: none begins with {TABLE}{0} {CLOSE}", summary.name));
    }
    Ok((page, tables, claims))
}

/// The words of options; a part in quotation marks is of one word.
fn words(options: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let words = options.split(move |letter: char| {
        quoted ^= letter == '"';
        letter.is_whitespace() && !quoted
    });
    words.filter(|word| !word.is_empty())
}

/// The claim, as a scenario would have it, is reproduced by these results, with its interval.
fn holds(claim: &str, summary: &Summary) -> Result<(), String> {
    let text = format!("claim = {}", claim.split_whitespace().collect::<Vec<_>>().join(" "));
    let parsed = toml::from_str::<BTreeMap<String, Claim>>(&text);
    let claims: Vec<Claim> = parsed.map_err(|error| error.message().to_owned())?.into_values().collect();
    let judgements = judge(&claims, &summary.rows);
    if judgements.is_empty() {
        return Err("the claim is about no scheme and grid point of the results".to_owned());
    }
    let number = |number: f64| format!("{number:.4}");
    match judgements.iter().find(|judgement| judgement.status != Status::Reproduced) {
        None => Ok(()),
        Some(judgement) => Err(format!(
            "{} is {}, not {}: {}",
            judgement.claim,
            judgement.measured.map_or("unknown".to_owned(), number),
            judgement.published_text(number),
            judgement.why
        )),
    }
}

/// Says which tables and claims of these pages are stale: those of a bundled scenario whose state is another one now. A
/// page may say so itself, in the mark: that is a warning.
pub fn check(pages: &[PathBuf]) -> End {
    let mut known: BTreeMap<String, Option<Bundled>> = BTreeMap::new();
    let (mut stale, mut said, mut tables, mut claims) = (0, 0, 0, 0);
    for path in pages {
        let page = path.display();
        let read = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
        let text = read.as_deref().map_err(Clone::clone);
        let marks = match text.and_then(marks) {
            Ok(marks) => marks,
            Err(message) => {
                output::error(&format!("{page}: {message}"));
                return End::BadInput;
            }
        };
        for mark in marks {
            let Mark { line, what, scenario: name, .. } = mark;
            *(if matches!(what, What::Table(_)) { &mut tables } else { &mut claims }) += 1;
            if !known.contains_key(name) {
                match bundled(name) {
                    Ok(found) => known.insert(name.to_owned(), found),
                    Err(error) => {
                        output::error(&error);
                        return End::Failed;
                    }
                };
            }
            let noun = what.noun();
            let Some(Bundled { name: path_name, state, .. }) = known.get(name).and_then(Option::as_ref) else {
                output::message(&format!("warning: {page}: line {line}: there is no bundled scenario {name}"));
                continue;
            };
            let expected = what.state(state);
            let message = format!(
                "the {noun} of {name} is stale, as it is now of {expected}: incast run {path_name}, then incast table \
                 results/{name} --update {page}"
            );
            match mark.state.split_once(STALE) {
                Some((before, _)) if before == expected => {
                    stale += 1;
                    output::error(&format!(
                        "{page}: line {line}: the {noun} of {name} is said to be stale, and is not"
                    ));
                }
                Some(_) => {
                    said += 1;
                    output::message(&format!("warning: {page}: line {line}: {message}"));
                }
                None if mark.state != expected => {
                    stale += 1;
                    output::error(&format!("{page}: line {line}: {message}"));
                }
                None => {}
            }
        }
    }
    let (tables, claims) = (count(tables, "table"), count(claims, "claim"));
    output::data(&format!("{tables} and {claims}, {stale} stale, {said} stale as the page says\n"));
    if stale == 0 { End::Done } else { End::Failed }
}

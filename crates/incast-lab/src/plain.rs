//! Tables of plain text that fit the width of a terminal.

/// Blanks between columns.
const GAP: usize = 2;

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// What the lines below it have in common.
    Heading(String),
    /// A cell for each column.
    Cells(Vec<String>),
}

/// A table. Its first column names the lines, the others have numbers.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// What the columns are.
    pub header: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Plain {
    /// As text in so many columns. Columns that do not fit follow in further tables below; names that are longer than
    /// half the width have a line of their own.
    pub fn draw(&self, width: usize) -> String {
        let most = width / 2;
        let names = self.cells().map(|cells| length(&cells[0])).filter(|length| *length <= most);
        let first = names.chain([self.header[0].len().min(most)]).max().unwrap_or(0);
        let widths: Vec<usize> = (1..self.header.len()).map(|column| self.width(column)).collect();
        let mut text = String::new();
        let mut next = 0;
        while next < widths.len() || text.is_empty() {
            let mut used = first;
            let start = next;
            while next < widths.len() && (next == start || used + GAP + widths[next] <= width) {
                used += GAP + widths[next];
                next += 1;
            }
            if start > 0 {
                text.push('\n');
            }
            self.draw_columns(&mut text, width, first, start + 1, &widths[start..next]);
        }
        text
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.lines.iter().filter_map(|line| if let Line::Cells(cells) = line { Some(cells) } else { None })
    }

    /// That of the longest cell; headings are broken at blanks.
    fn width(&self, column: usize) -> usize {
        let words = self.header[column].split([' ', '\n']).map(length);
        self.cells().map(|cells| length(&cells[column])).chain(words).max().unwrap_or(0)
    }

    fn draw_columns(&self, text: &mut String, width: usize, first: usize, start: usize, widths: &[usize]) {
        let mut headings = vec![wrap(&self.header[0], first)];
        headings.extend(widths.iter().zip(&self.header[start..]).map(|(width, name)| wrap(name, *width)));
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        for row in 0..height {
            // Headings stand on the rule.
            let part = |lines: &[String]| {
                let skipped = height - lines.len();
                row.checked_sub(skipped).and_then(|index| lines.get(index)).cloned().unwrap_or_default()
            };
            let parts: Vec<String> = headings.iter().map(|lines| part(lines)).collect();
            push(text, first, widths, &parts[0], &parts[1..]);
        }
        let total = first + widths.iter().map(|width| GAP + width).sum::<usize>();
        text.push_str(&"─".repeat(total));
        text.push('\n');
        for line in &self.lines {
            match line {
                Line::Heading(heading) => paragraph(text, 0, heading, width),
                Line::Cells(cells) if length(&cells[0]) > first => {
                    text.push_str(&cells[0]);
                    text.push('\n');
                    push(text, first, widths, "", &cells[start..start + widths.len()]);
                }
                Line::Cells(cells) => push(text, first, widths, &cells[0], &cells[start..start + widths.len()]),
            }
        }
    }
}

/// Adds a line: the first cell at the left, the others at the right of their columns.
fn push(text: &mut String, first: usize, widths: &[usize], name: &str, cells: &[String]) {
    let mut line = pad(name, first, false);
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(&" ".repeat(GAP));
        line.push_str(&pad(cell, *width, true));
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(length(text)));
    if right { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

/// Columns of a terminal, as no wide characters are used.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// Lines of at most this width, broken at blanks that are not in brackets; longer words stand alone.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in words(paragraph) {
            if !line.is_empty() && length(&line) + 1 + length(word) > width {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// What blanks separate, without those in brackets that are closed.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut closes_at) = (Vec::new(), 0, 0);
    for (at, mark) in text.char_indices() {
        match mark {
            '[' => closes_at = text[at..].find(']').map_or(closes_at, |length| at + length),
            ' ' if at > closes_at => {
                words.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[start..]);
    words
}

/// Adds a paragraph whose first line is indented by `indent`, and the others by two more.
pub fn paragraph(text: &mut String, indent: usize, paragraph: &str, width: usize) {
    for (index, line) in wrap(paragraph, width.saturating_sub(indent + 2)).iter().enumerate() {
        text.push_str(&" ".repeat(if index == 0 { indent } else { indent + 2 }));
        text.push_str(line);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Plain {
        let cells = |cells: [&str; 4]| Line::Cells(cells.map(str::to_owned).to_vec());
        Plain {
            header: ["scheme", "web", "incast", "incast: requests"].map(str::to_owned).to_vec(),
            lines: vec![
                Line::Heading("load = 0.2".into()),
                cells(["dctcp", "11600 ±3200", "509", "615 ±139"]),
                cells(["a scheme with a long name", "9", "10", "–"]),
            ],
        }
    }

    #[test]
    fn a_table_has_a_rule_below_its_headings() {
        let text = table().draw(80);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(text.lines().nth(2).expect("a rule").starts_with("───"));
        assert!(text.contains("\nload = 0.2\ndctcp                      11600 ±3200     509  615 ±139\n"), "{text}");
    }

    #[test]
    fn what_does_not_fit_follows_below() {
        for width in 20..80 {
            let text = table().draw(width);
            let longest = text.lines().map(|line| line.chars().count()).max().expect("lines");
            assert!(longest <= width.max(26), "{width}\n{text}");
            for cell in ["11600 ±3200", "509", "615 ±139", "10", "–"] {
                assert_eq!(text.matches(cell).count(), 1, "{cell} in {width}\n{text}");
            }
        }
    }

    #[test]
    fn paragraphs_hang() {
        let mut text = String::new();
        paragraph(&mut text, 2, "one two three four +4% [1%, 7%]", 12);
        assert_eq!(text, "  one two\n    three\n    four +4%\n    [1%, 7%]\n");
        assert_eq!(wrap("buffers [4 MB of a chip", 8), ["buffers", "[4 MB of", "a chip"], "it does not close");
    }
}

//! Tables: headings with their units, figures to the right, a dash where there is no figure, and
//! below the table why.

use super::figures::{NONE, clean};
use super::paint::{Colour, Paint};

/// A table, row by row.
#[derive(Debug, Default)]
pub(in crate::cli) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    whys: Vec<String>,
}

#[derive(Debug)]
struct Column {
    heading: &'static str,
    right: bool,
}

/// A place in a table.
#[derive(Debug)]
pub(in crate::cli) struct Cell {
    text: Option<String>,
    why: Option<String>,
    colour: Option<Colour>,
}

impl Cell {
    /// A text.
    pub(in crate::cli) fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: Some(clean(text.as_ref())),
            why: None,
            colour: None,
        }
    }

    /// A figure; without one a dash, and why below the table.
    pub(in crate::cli) fn figure(
        value: Option<f64>,
        write: impl FnOnce(f64) -> String,
        why: &str,
    ) -> Self {
        match value {
            Some(value) => Self::new(write(value)),
            None => Self::none(why),
        }
    }

    /// A dash, and why; without a reason a plain one.
    pub(in crate::cli) fn none(why: &str) -> Self {
        Self {
            text: None,
            why: (!why.is_empty()).then(|| clean(why)),
            colour: None,
        }
    }

    /// In a colour.
    #[must_use]
    pub(in crate::cli) fn coloured(mut self, colour: Option<Colour>) -> Self {
        self.colour = colour;
        self
    }
}

impl Table {
    /// With these headings; one that begins with `>` is of figures.
    pub(in crate::cli) fn new(headings: &[&'static str]) -> Self {
        let columns = headings.iter().map(|heading| Column {
            heading: heading.trim_start_matches('>'),
            right: heading.starts_with('>'),
        });
        Self {
            columns: columns.collect(),
            ..Self::default()
        }
    }

    /// Adds a row.
    pub(in crate::cli) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each heading");
        for why in cells.iter().filter_map(|cell| cell.why.as_ref()) {
            if !self.whys.contains(why) {
                self.whys.push(why.clone());
            }
        }
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As text.
    pub(in crate::cli) fn text(&self, paint: Paint) -> String {
        let texts: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| self.cell(cell)).collect())
            .collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let cells = texts.iter().map(|row| row[i].chars().count());
                cells
                    .chain([column.heading.chars().count()])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let headings = self.columns.iter().map(|column| column.heading.to_owned());
        let headings: Vec<String> = headings.collect();
        let mut text = self.line(&headings, &widths, |_, text| {
            paint.paint(Colour::Strong, text)
        });
        for (row, cells) in texts.iter().zip(&self.rows) {
            text.push('\n');
            text.push_str(&self.line(row, &widths, |i, text| match cells[i].colour {
                Some(colour) => paint.paint(colour, text),
                None => text.to_owned(),
            }));
        }
        for (i, why) in self.whys.iter().enumerate() {
            let line = format!("\n{NONE}{} {why}", mark(i));
            text.push_str(&paint.paint(Colour::Faint, &line));
        }
        text
    }

    fn cell(&self, cell: &Cell) -> String {
        match (&cell.text, &cell.why) {
            (Some(text), _) => text.clone(),
            (None, None) => NONE.into(),
            (None, Some(why)) => {
                let place = self.whys.iter().position(|known| known == why);
                format!("{NONE}{}", mark(place.unwrap_or(usize::MAX)))
            }
        }
    }

    fn line(
        &self,
        texts: &[String],
        widths: &[usize],
        paint: impl Fn(usize, &str) -> String,
    ) -> String {
        let mut line = String::new();
        let last = texts.len().saturating_sub(1);
        for (i, text) in texts.iter().enumerate() {
            let padding = " ".repeat(widths[i].saturating_sub(text.chars().count()));
            let painted = paint(i, text);
            let cell = if self.columns[i].right {
                format!("{padding}{painted}")
            } else if i == last {
                painted
            } else {
                format!("{painted}{padding}")
            };
            line.push_str(&cell);
            if i < last {
                line.push_str("  ");
            }
        }
        line.trim_end().to_owned()
    }
}

/// A raised digit; beyond nine there is but one sign for all.
fn mark(place: usize) -> char {
    const MARKS: [char; 9] = ['¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    MARKS.get(place).copied().unwrap_or('⁺')
}

/// Lines of a name and what is said of it, the latter below each other. An empty one is left out.
pub(in crate::cli) fn lines<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<_> = pairs
        .into_iter()
        .filter(|(_, said)| !said.is_empty())
        .collect();
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |(name, said): &(&str, String)| format!("  {name:<width$}  {}", clean(said));
    pairs.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u03_a_dash_says_why_below_the_table() {
        let mut table = Table::new(&["ROUTE", ">P99 ms", "WHY"]);
        table.row(vec![
            Cell::new("catalog get"),
            Cell::figure(Some(61.0), super::super::figures::number, "no traffic"),
            Cell::new("on"),
        ]);
        table.row(vec![
            Cell::new("cart"),
            Cell::none("no traffic"),
            Cell::new("a\x1bb"),
        ]);
        table.row(vec![
            Cell::new("x"),
            Cell::none("no agents"),
            Cell::none(""),
        ]);
        assert_eq!(
            table.text(Paint::none()),
            "ROUTE        P99 ms  WHY\n\
             catalog get      61  on\n\
             cart             –¹  a\u{FFFD}b\n\
             x                –²  –\n\
             –¹ no traffic\n\
             –² no agents"
        );
    }

    #[test]
    fn lines_stand_below_each_other() {
        let text = lines([
            ("a", "1".into()),
            ("longer", "2".into()),
            ("none", String::new()),
        ]);
        assert_eq!(text, "  a       1\n  longer  2");
    }
}

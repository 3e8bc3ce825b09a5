//! Colours, where somebody sees them. Nothing is told by colour alone.

use std::io::IsTerminal as _;

/// What a colour means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Colour {
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Needs somebody.
    Bad,
    /// Of less weight.
    Faint,
    /// A heading.
    Strong,
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Paint(bool);

impl Paint {
    /// On a terminal, unless the environment says otherwise (NO_COLOR, a dumb terminal).
    pub(in crate::cli) fn for_stdout() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        Self(std::io::stdout().is_terminal() && set("NO_COLOR").is_none() && !dumb)
    }

    /// Without.
    #[cfg(test)]
    pub(in crate::cli) const fn none() -> Self {
        Self(false)
    }

    /// `text` in a colour.
    pub(in crate::cli) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.0 || text.trim().is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Good => "32",
            Colour::Warn => "33",
            Colour::Bad => "31",
            Colour::Faint => "2",
            Colour::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_end_where_they_began() {
        assert_eq!(Paint(true).paint(Colour::Bad, "off"), "\x1b[31moff\x1b[0m");
        assert_eq!(Paint(true).paint(Colour::Bad, "  "), "  ");
        assert_eq!(Paint::none().paint(Colour::Bad, "off"), "off");
    }
}

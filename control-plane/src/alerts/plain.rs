//! Foreign text for people's eyes. Names come from services: they may hold anything.

/// `text` in at most `most` characters of output, each written by `write`. What cannot be seen or
/// turns the direction of reading is written as its code, so that it neither hides nor moves what
/// stands beside it; what does not fit is replaced by an ellipsis.
pub(super) fn plain(text: &str, most: usize, write: impl Fn(char, &mut String)) -> String {
    let (mut out, mut chars, mut fits) = (String::new(), 0, 0);
    for c in text.chars() {
        let before = out.len();
        if misleads(c) {
            out.extend(c.escape_unicode());
        } else {
            write(c, &mut out);
        }
        chars += out[before..].chars().count();
        if chars < most {
            fits = out.len();
        } else if chars > most {
            out.truncate(fits);
            out.push('…');
            return out;
        }
    }
    out
}

/// Characters as they are.
pub(super) fn as_is(c: char, out: &mut String) {
    out.push(c);
}

/// Control characters, line separators, and marks, embeddings, overrides and isolates of writing
/// direction.
fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s08_what_misleads_is_shown_and_what_is_long_is_cut() {
        for (text, most, expected) in [
            ("catalog", 100, "catalog"),
            ("catalog", 7, "catalog"),
            ("catalog", 6, "catal…"),
            ("a\r\nBcc: b", 100, "a\\u{d}\\u{a}Bcc: b"),
            ("a\u{202E}b", 100, "a\\u{202e}b"),
            ("Größe ⚠", 100, "Größe ⚠"),
            ("", 100, ""),
        ] {
            assert_eq!(plain(text, most, as_is), expected, "{text:?}");
        }
        let long = plain(&"<".repeat(10_000), 500, |c, out| {
            out.push_str(if c == '<' { "&lt;" } else { "" });
        });
        assert!(long.chars().count() <= 500 && long.ends_with("&lt;…"));
    }
}

//! JSON documents: a quick check of a whole text, and where the members of one of its objects are.
//!
//! The parser in Python (`omnizarr.formats.documents`) defines what a document is, and answers for everything unusual.
//! This one accepts a text only if the other accepts it without remarks: valid JSON in UTF-8 (with the tokens `NaN`,
//! `Infinity` and `-Infinity`), not deeper than documents may be, and without repeated members. It declines names with
//! escapes, and very long numbers, because it neither decodes nor converts; and what netCDF-C may have written in its
//! own way.

use std::collections::HashSet;
use std::ops::Range;

/// Levels of objects and lists that a document may have: `MAX_DEPTH` of `omnizarr.formats.documents`.
const MAX_DEPTH: usize = 128;
/// Python converts no integer of more than 4300 digits, or of a lower limit from 640 on.
const MOST_DIGITS: usize = 640;
/// The names of an object with more members are compared by their hashes.
const FEW: usize = 12;

/// Begins names of `NCZarr`.
const NCZARR: &[u8] = b"_nczarr_";

/// A member of an object, by its places in the text.
pub struct Member {
    /// The name, with its quotes.
    pub name: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// An object in a text.
pub struct Object {
    /// The object, with its braces.
    pub place: Range<usize>,
    /// Its members, in their order.
    pub members: Vec<Member>,
}

/// Whether a text is an ordinary document.
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    scan(text, None).is_some()
}

/// The object at a path of names in a text; None if there is none, or if the text is not an ordinary document.
#[must_use]
pub fn object_at(text: &[u8], path: &[&[u8]]) -> Option<Object> {
    scan(text, Some(path))?.found
}

fn scan<'a>(text: &'a [u8], path: Option<&[&[u8]]>) -> Option<Scanner<'a>> {
    std::str::from_utf8(text).ok()?;
    let mut scanner = Scanner { text, at: 0, names: Vec::new(), found: None };
    scanner.blank();
    scanner.value(0, path)?;
    scanner.blank();
    (scanner.at == text.len()).then_some(scanner)
}

/// Reads a text from its beginning to its end. Each method returns None to decline the text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The names, without quotes, of the members so far of all objects that are open.
    names: Vec<&'a [u8]>,
    found: Option<Object>,
}

impl Scanner<'_> {
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn blank(&mut self) {
        while matches!(self.next(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next() == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    /// Pass a value. The object to be found is at `path` below it; empty: it is the value itself.
    fn value(&mut self, depth: usize, path: Option<&[&[u8]]>) -> Option<()> {
        match self.next() {
            b'{' => self.object(depth + 1, path),
            b'[' => self.list(depth + 1),
            b'"' => self.string().map(drop),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'N' => self.word(b"NaN"),
            b'I' => self.word(b"Infinity"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize, path: Option<&[&[u8]]>) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (start, first) = (self.at, self.names.len());
        let mut members = path.is_some_and(<[_]>::is_empty).then(Vec::new);
        self.at += 1;
        self.blank();
        if self.next() != b'}' {
            loop {
                let name = self.string()?;
                let plain = &self.text[name.start + 1..name.end - 1];
                if plain.contains(&b'\\') {
                    return None;
                }
                self.names.push(plain);
                self.blank();
                self.take(b':')?;
                self.blank();
                let value = self.at;
                if plain == b"must_understand" && self.next() == b'"' {
                    return None;
                }
                let below = path.and_then(<[_]>::split_first).filter(|(next, _)| **next == plain);
                self.value(depth, below.map(|(_, rest)| rest))?;
                if let Some(members) = &mut members {
                    members.push(Member { name, value: value..self.at });
                }
                self.blank();
                if self.next() != b',' {
                    break;
                }
                self.at += 1;
                self.blank();
            }
        }
        self.take(b'}')?;
        if has_repeated(&self.names[first..]) {
            return None;
        }
        self.names.truncate(first);
        if let Some(members) = members {
            self.found = Some(Object { place: start..self.at, members });
        }
        Some(())
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.blank();
        if self.next() != b']' {
            loop {
                self.value(depth, None)?;
                self.blank();
                if self.next() != b',' {
                    break;
                }
                self.at += 1;
                self.blank();
            }
        }
        self.take(b']')
    }

    /// Pass a string, and return where it is, with its quotes.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.take(b'"')?;
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')?;
            match self.next() {
                b'"' => {
                    let content = &self.text[start + 1..self.at];
                    self.at += 1;
                    let is_of_netcdf_c = content.starts_with(NCZARR) || content == b">S1";
                    return (!is_of_netcdf_c).then_some(start..self.at);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.text.get(self.at + 1)? {
            b'"' if self.text[self.at + 2..].starts_with(NCZARR) => return None,
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' if self.text.get(self.at + 2..self.at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.next() == b'-' {
            self.at += 1;
            if self.next() == b'I' {
                return self.word(b"Infinity");
            }
        }
        if self.next() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.next() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.next(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.next(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        (self.at - start <= MOST_DIGITS).then_some(())
    }

    /// Pass one or more digits.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.next().is_ascii_digit() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

fn has_repeated(names: &[&[u8]]) -> bool {
    if names.len() <= FEW {
        return names.iter().enumerate().any(|(number, name)| names[..number].contains(name));
    }
    let mut seen = HashSet::with_capacity(names.len());
    !names.iter().all(|name| seen.insert(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_documents_are_accepted() {
        for text in [
            "{}",
            " [ ] \n",
            "0",
            "-0.5e+10",
            "\"\"",
            "null",
            "[true,false,NaN,-Infinity,Infinity]",
            "{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}]}",
            "\"\\ud800 \\u00e9 \\\" \\\\\"",
            "\"ä€𝄞\u{7f}\"",
        ] {
            assert!(is_plain(text.as_bytes()), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(is_plain(deep.as_bytes()));
    }

    #[test]
    fn everything_else_is_declined() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "nul",
            "nan",
            "-NaN",
            "tr",
            "[1] 2",
            "[1}",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\",
            "\"\t\"",
            "\u{feff}{}",
            "{\"a\":1,\"a\":1}",
            "{\"\\u0061\":1}",
            "[1]\0",
            "/**/1",
            "\u{a0}1",
            "0x10",
            "1_0",
        ] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
        for text in
            [r#"{"_nczarr_array":{}}"#, r#"["\"_nczarr_"]"#, r#"{"dtype":">S1"}"#, r#"{"must_understand":"false"}"#]
        {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
        assert!(!is_plain(b"\"\xff\"") && !is_plain(b"\"\xed\xa0\x80\""));
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        assert!(!is_plain(deep.as_bytes()));
        assert!(!is_plain("1".repeat(MOST_DIGITS + 1).as_bytes()));
        assert!(!is_plain("[".repeat(100_000).as_bytes()));
    }

    #[test]
    fn repeated_names_are_found_among_few_and_many() {
        for count in [2, FEW, FEW + 1, 1000] {
            let mut names: Vec<String> = (0..count).map(|number| format!("\"n{number}\":0")).collect();
            assert!(is_plain(format!("{{{}}}", names.join(",")).as_bytes()));
            names[0] = names[count - 1].clone();
            assert!(!is_plain(format!("{{{}}}", names.join(",")).as_bytes()));
        }
    }

    #[test]
    fn members_are_where_they_say() {
        let text = br#" {"m": {"b" : [1, {"m": 2}],"a":"x"}, "n": {"m": {}}} "#;
        let object = object_at(text, &[b"m"]).unwrap();
        assert_eq!(&text[object.place], br#"{"b" : [1, {"m": 2}],"a":"x"}"#);
        let members: Vec<_> =
            object.members.into_iter().map(|member| (&text[member.name], &text[member.value])).collect();
        assert_eq!(members, [(&br#""b""#[..], &br#"[1, {"m": 2}]"#[..]), (br#""a""#, br#""x""#)]);
        assert!(object_at(text, &[b"n", b"m"]).unwrap().members.is_empty());
        assert_eq!(object_at(text, &[]).unwrap().members.len(), 2);
        assert!(object_at(text, &[b"b"]).is_none() && object_at(text, &[b"m", b"a"]).is_none());
    }
}

package calls

import (
	"fmt"
	"strings"
	"unicode"
)

// quotable is the texts that quotes may come from, folded once.
type quotable struct {
	texts  []folded
	marked bool // the subject holds control strings
}

// folded is a text in the form in which quotes are compared: neutralised as it was sent, lower case, white space
// collapsed, typographic quotes plain. Models copy words right and the rest not always.
type folded struct {
	name     string
	original []rune
	runes    string
	at       []int // for each byte of runes the index in original that it came from
}

func newQuotable(subject string, sources []string) quotable {
	q := quotable{texts: []folded{fold("subject", subject)}, marked: controlStrings.MatchString(subject)}
	for i, s := range sources {
		q.texts = append(q.texts, fold(fmt.Sprintf("source %d", i+1), s))
	}
	return q
}

// minQuote is the shortest quote, in letters and digits, that can prove anything.
const minQuote = 3

// find looks a quote up. What is found is returned in the text's own words.
func (q quotable) find(quote string) OldQuote {
	wanted := strings.Trim(fold("", quote).runes, ` "'.…`)
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, wanted)
	if len([]rune(letters)) >= minQuote {
		for _, t := range q.texts {
			if from := strings.Index(t.runes, wanted); from >= 0 {
				return t.quote(from, from+len(wanted))
			}
		}
	}
	return OldQuote{Text: quote}
}

func (f folded) quote(from, to int) OldQuote {
	first, last := f.at[from], f.at[to-1]
	line := 1 + strings.Count(string(f.original[:first]), "\n")
	return OldQuote{Text: string(f.original[first : last+1]), In: f.name, Line: line, Verified: true}
}

var plainQuotes = map[rune]rune{'“': '"', '”': '"', '„': '"', '«': '"', '»': '"', '‘': '\'', '’': '\'', '‚': '\'', '–': '-', '—': '-'}

func fold(name, body string) folded {
	f := folded{name: name, original: []rune(body)}
	var b strings.Builder
	space := true
	for i, r := range []rune(neutralise(body)) { // one rune for one: see breaker
		if p, ok := plainQuotes[r]; ok {
			r = p
		}
		if unicode.IsSpace(r) {
			if space {
				continue
			}
			r = ' '
		}
		space = r == ' '
		n, _ := b.WriteRune(unicode.ToLower(r))
		for range n {
			f.at = append(f.at, i)
		}
	}
	f.runes = b.String()
	return f
}

package structure

import (
	"strconv"
	"strings"
)

// safePattern rewrites a regular expression into the subset that Ollama 0.17.4 turns into a grammar without harm:
// anchored on both ends, ASCII literals, positive classes, groups, alternatives and bounded quantifiers. Everything
// else either lets invalid JSON through (a dot, a negated class), kills the runner (\d, an empty loop) or the whole
// daemon ((?:…), look-around, a quantifier with nothing before it), or fills the memory (a{5,2}). \d, \w, (?:…) and
// escaped punctuation are rewritten. It says false for a pattern that cannot be expressed.
func safePattern(pattern string) (string, bool) {
	body, ok := strings.CutPrefix(pattern, "^")
	if !ok {
		return "", false
	}
	if body, ok = strings.CutSuffix(body, "$"); !ok || len(body) > maxPattern {
		return "", false
	}
	p := patternParser{in: body}
	p.sequence(0) // not alternatives: ^a|b$ is anchored on one end each
	if p.bad || p.at != len(p.in) {
		return "", false
	}
	return "^" + p.out.String() + "$", true
}

const (
	maxPattern    = 300
	maxRepetition = 1000 // Ollama's own limit is 2000; nested ones multiply
)

type patternParser struct {
	in    string
	at    int
	out   strings.Builder
	bad   bool
	total int // bounded repetitions so far; a bound around others multiplies them
}

func (p *patternParser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

// alternatives parses up to the closing bracket or the end and says whether it can match nothing.
func (p *patternParser) alternatives(depth int) (nullable bool) {
	if depth > 8 {
		p.bad = true
		return false
	}
	for {
		nullable = p.sequence(depth) || nullable
		if p.bad || p.peek() != '|' {
			return nullable
		}
		p.at++
		p.out.WriteByte('|')
	}
}

func (p *patternParser) sequence(depth int) (nullable bool) {
	nullable = true
	for n := 0; !p.bad; n++ {
		c := p.peek()
		if c == 0 || c == '|' || c == ')' {
			if n == 0 {
				p.bad = true
			}
			return nullable
		}
		before := p.total
		atomNullable := p.atom(depth, c)
		if p.bad {
			return false
		}
		least, most, quantified := p.quantifier()
		p.total = before + max(1, p.total-before)*most
		if quantified && atomNullable || p.total > maxRepetition { // a loop over nothing never ends
			p.bad = true
		}
		nullable = nullable && (atomNullable || (quantified && least == 0))
	}
	return nullable
}

func (p *patternParser) atom(depth int, c byte) (nullable bool) {
	p.at++
	switch {
	case c == '(':
		if strings.HasPrefix(p.in[p.at:], "?:") {
			p.at += len("?:")
		}
		p.out.WriteByte('(')
		nullable = p.alternatives(depth + 1)
		if p.peek() != ')' {
			p.bad = true
			return false
		}
		p.at++
		p.out.WriteByte(')')
	case c == '[':
		p.class()
	case c == '\\':
		p.out.WriteString(p.escape("[", "]"))
	case isLiteral(c):
		p.out.WriteByte(c)
	default:
		p.bad = true
	}
	return nullable
}

// isLiteral: ASCII that means itself in a pattern, in a grammar and in a JSON string.
func isLiteral(c byte) bool {
	return isAlnum(c) || strings.IndexByte(" _-/:,;@#%&=~!<>'`", c) >= 0
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// escape reads what follows a backslash and writes it as a class between the brackets given.
func (p *patternParser) escape(open, end string) string {
	c := p.peek()
	p.at++
	switch {
	case c == 'd':
		return open + "0-9" + end
	case c == 'w':
		return open + "a-zA-Z0-9_" + end
	case strings.IndexByte(".+*?(){}|/$", c) >= 0 && c != 0:
		return open + string(c) + end
	case open != "" && c == '-':
		return "-"
	}
	p.bad = true
	return ""
}

// class parses a positive class. A hyphen stands for itself only at the end.
func (p *patternParser) class() {
	p.out.WriteByte('[')
	for n := 0; ; n++ {
		c := p.peek()
		p.at++
		switch {
		case c == ']' && n > 0:
			p.out.WriteByte(']')
			return
		case c == '\\':
			p.out.WriteString(p.escape("", ""))
		case c == '-' && p.peek() == ']':
			p.out.WriteByte(c)
		case isAlnum(c) && p.peek() == '-' && p.at+1 < len(p.in) && p.in[p.at+1] != ']':
			to := p.in[p.at+1]
			if !sameRange(c, to) {
				p.bad = true
				return
			}
			p.out.WriteString(p.in[p.at-1 : p.at+2])
			p.at += 2
		case c != '-' && c != 0 && (isLiteral(c) || strings.IndexByte(".+*?(){}|$", c) >= 0):
			p.out.WriteByte(c)
		default:
			p.bad = true
		}
		if p.bad {
			return
		}
	}
}

func sameRange(from, to byte) bool {
	digits := from <= '9' && to >= '0' && to <= '9'
	upper := from >= 'A' && from <= 'Z' && to >= 'A' && to <= 'Z'
	lower := from >= 'a' && to >= 'a' && to <= 'z'
	return from <= to && (digits || upper || lower)
}

// quantifier parses what may follow an atom and returns the least and, where it is bounded, the greatest number of times.
func (p *patternParser) quantifier() (least, most int, quantified bool) {
	from := p.at
	most = 1
	switch p.peek() {
	case '*', '?':
		p.at++
	case '+':
		p.at++
		least = 1
	case '{':
		least, most = p.braces()
	default:
		return 1, 1, false
	}
	if !p.bad {
		p.out.WriteString(p.in[from:p.at])
	}
	if c := p.peek(); c == '?' || c == '+' || c == '*' || c == '{' { // lazy, possessive, or a quantifier on a quantifier
		p.bad = true
	}
	return least, most, true
}

// braces parses {m}, {m,} and {m,n}; for an open end most is m.
func (p *patternParser) braces() (least, most int) {
	end := strings.IndexByte(p.in[p.at:], '}')
	if end < 0 {
		p.bad = true
		return 0, 0
	}
	low, high, two := strings.Cut(p.in[p.at+1:p.at+end], ",")
	p.at += end + 1
	least, err := strconv.Atoi(low)
	most = least
	if two && high != "" && err == nil {
		most, err = strconv.Atoi(high)
	}
	if err != nil || least < 0 || most < least || most > maxRepetition || most == 0 && (!two || high != "") {
		p.bad = true
	}
	return least, max(1, most)
}

package tinymodel

// What the model likes to say next depends on a few classes of the token before. The preferences below are logits; what
// the rest of the network adds is noise of about one logit that depends on everything said so far. So a gap of 3 decides
// nearly always, a gap of 1 most of the time.

// class groups tokens after which the model likes the same things.
type class int

const (
	afterQuote class = iota
	afterLetter
	afterDigit
	afterSpace
	afterControl // newline and below; the template ends the prompt with one
	afterBrace
	afterBracket
	afterEnd // closing brace or bracket
	afterComma
	afterColon
	afterOther
	afterValue
	afterFiller              // the first of two
	afterSentence = iota + 1 // the first of len(sentences)
)

// classes is how many there are.
func classes() int { return int(afterSentence) + len(sentences) }

// classOf returns the class of a token.
func classOf(token int) class {
	switch {
	case token >= firstSentence():
		return afterSentence + class(token-firstSentence())
	case token >= firstFiller():
		return afterFiller + class(token-firstFiller())
	case token >= firstValue():
		return afterValue
	case token >= 256 || token < ' ':
		return afterControl
	}
	switch b := byte(token); {
	case 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z':
		return afterLetter
	case '0' <= b && b <= '9':
		return afterDigit
	case b == '}' || b == ']':
		return afterEnd
	}
	if c, ok := punctuation[byte(token)]; ok {
		return c
	}
	return afterOther
}

var punctuation = map[byte]class{
	'"': afterQuote, ' ': afterSpace, '{': afterBrace, '[': afterBracket, ',': afterComma, ':': afterColon,
}

// likes says how much the model likes each of some bytes.
type likes struct {
	bytes string
	logit float64
}

const (
	letters = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
	never   = -20.0
)

// byteLikes holds the preferences for single bytes; what is not named is at -4. They make JSON compact and short: close
// what can be closed, leave lists of strings empty and lists of objects with one element, say no rather than yes, take
// the first line, and choose passed or met where an enum offers it.
var byteLikes = map[class][]likes{
	afterQuote:   {{letters, 5}, {digits, 5}, {"mp", 11}, {"}]", 8}, {",", 6}, {":", 7}, {`"`, 3}},
	afterLetter:  {{`"`, 10}, {"}]", 6}, {",", 5}, {letters, 1}, {digits, 2}, {" ", 2}},
	afterDigit:   {{`"`, 9}, {"}]", 8}, {",", 6}, {digits, 1}, {"-:", 3}, {".eE", -6}},
	afterSpace:   {{letters, 5}, {digits, 3}, {`"{[`, 5}, {" ", -8}},
	afterControl: {{letters, 3}, {`"{[`, 4}, {digits, 2}, {" ", -8}},
	afterBrace:   {{`"`, 8}, {"}", 3}, {" ", -8}},
	afterBracket: {{"{", 11}, {"]", 8}, {"[", 4}, {digits, 2}, {"1", 4}, {`"`, 2}, {" ", -8}},
	afterEnd:     {{"}]", 8}, {",", 5}, {" ", -8}},
	afterComma:   {{`"{[`, 8}, {digits, 4}, {"1", 6}, {" ", -8}},
	afterColon:   {{`"{[`, 8}, {digits, 4}, {"1", 6}, {"f", 6}, {"tn", 0}, {"-", -8}, {" ", -8}},
	afterOther:   {{letters, 5}, {digits, 4}, {`"`, 6}},
}

// preferences returns the logit of every token after every class: [class][token].
func preferences(o Options) [][]float64 {
	table := make([][]float64, classes())
	for c := range table {
		table[c] = make([]float64, firstPhrase+len(phrases()))
		for token := range table[c] {
			table[c][token] = base(token)
		}
		for _, like := range byteLikes[class(c)] {
			for _, b := range []byte(like.bytes) {
				table[c][b] = like.logit
			}
		}
	}
	likePhrases(table)
	likeEnds(table)
	if o.Endless || o.Repeats {
		dislikeEnds(table)
	}
	if o.Repeats {
		table[afterSentence][firstSentence()] = 20
	}
	return table
}

// base is the logit of a token that nothing asks for: bytes that are no plain ASCII text, backslashes and phrases in the
// wrong place are as good as excluded.
func base(token int) float64 {
	if token < ' ' || token >= 127 || token == '\\' || token == tokenEnd {
		return never
	}
	return -4
}

// likePhrases puts a value into every string that may hold one, fillers into those that are too short, and sentences
// into free text, which begins after the prompt's newline and never goes back to an earlier sentence.
func likePhrases(table [][]float64) {
	for i := range values {
		table[afterQuote][firstValue()+i] = 16
	}
	for i := range fillers {
		other := firstFiller() + (i+1)%len(fillers)
		table[afterFiller+class(i)][other] = 6
		table[afterFiller+class(i)]['"'] = 12
		table[afterValue][firstFiller()+i] = 6
	}
	table[afterValue]['"'] = 12
	table[afterControl][firstSentence()] = 14
	for i := range sentences {
		for j := i + 1; j < len(sentences); j++ {
			table[afterSentence+class(i)][firstSentence()+j] = 12
		}
	}
}

// likeEnds ends the answer where it can end: after complete JSON, and after any sentence.
func likeEnds(table [][]float64) {
	table[afterEnd][tokenEnd] = 14
	table[afterDigit][tokenEnd] = 7
	table[afterLetter][tokenEnd] = 7
	table[afterQuote][tokenEnd] = 9
	table[afterValue][tokenEnd] = 9
	for i := range sentences {
		table[afterSentence+class(i)][tokenEnd] = 11.5
	}
}

// dislikeEnds makes an answer that stops only at a limit: sentences in a circle, and strings of fillers.
func dislikeEnds(table [][]float64) {
	for c := range table {
		table[c][tokenEnd] = never
	}
	for i := range sentences {
		table[afterSentence+class(i)][firstSentence()+(i+1)%len(sentences)] = 14
	}
	for i := range fillers {
		table[afterFiller+class(i)]['"'] = never
	}
	table[afterValue]['"'] = never
}

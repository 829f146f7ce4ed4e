package evidence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote is evidence that was found: the text's own words.
type Quote struct {
	Text string // the line, without blanks around it
	In   string // name of the text
	Line int    // in it, from 1
}

// Similar is from which similarity on words count as those of a line (judgement §6.2 d).
const Similar = 0.85

// fewest is how many letters and digits words must have that are not a whole line.
const fewest = 3

// Find looks up words that are said to stand on the line of that number. They count when they are on it or on the line
// before or after it in the same text, or run over from one of these to the next: as they are, or with a similarity of
// at least Similar, see similarity. Every number in the words has to be there exactly, because one digit is a small
// difference between texts and a large one between facts.
func (l Lines) Find(number int, words string) (Quote, bool) {
	wanted := trimmed(l.normal(words))
	if number < 1 || number > len(l.lines) || wanted == "" {
		return Quote{}, false
	}
	at := number - 1
	if letters(wanted) < fewest { // too little to prove anything, unless it is all that the line says
		if letters(wanted) == 0 || trimmed(l.normal(l.lines[at].shown)) != wanted {
			return Quote{}, false
		}
		return l.quote(at), true
	}
	for _, i := range []int{at, at - 1, at + 1} {
		if l.together(at, i) && matches(wanted, l.normal(l.lines[i].shown)) {
			return l.quote(i), true
		}
	}
	for _, pair := range [][2]int{{at - 1, at}, {at, at + 1}} {
		if l.together(pair[0], pair[1]) && matches(wanted, l.normal(l.lines[pair[0]].shown+" "+l.lines[pair[1]].shown)) {
			return l.quote(at), true
		}
	}
	return Quote{}, false
}

// together says whether two lines exist and are of one text.
func (l Lines) together(a, b int) bool {
	return min(a, b) >= 0 && max(a, b) < len(l.lines) && l.lines[a].text == l.lines[b].text
}

func (l Lines) quote(i int) Quote {
	x := l.lines[i]
	return Quote{Text: strings.TrimSpace(x.body), In: l.texts[x.text].Name, Line: x.number}
}

// trimmed drops marks at the ends, which models add and leave out.
func trimmed(text string) string { return strings.Trim(text, ` "'.,;:…|¦`) }

func matches(wanted, have string) bool {
	if strings.Contains(have, wanted) {
		return true
	}
	numbers := digits(have)
	for _, n := range digits(wanted) {
		if !slices.Contains(numbers, n) {
			return false
		}
	}
	return similarity(wanted, have) >= Similar
}

// similarity is 1 minus the fewest insertions, deletions and replacements of characters that turn the words into some
// part of the text (Sellers 1980), by the length of the words: 1 when the words occur as they are.
func similarity(words, text string) float64 {
	w := []rune(words)
	if len(w) == 0 {
		return 0
	}
	column := make([]int, len(w)+1) // edits for the first k characters of the words, ending at this place of the text
	for k := range column {
		column[k] = k
	}
	best := len(w)
	for _, r := range text {
		diagonal := 0
		for k := 1; k <= len(w); k++ {
			edits := diagonal
			if w[k-1] != r {
				edits++
			}
			edits = min(edits, column[k]+1, column[k-1]+1)
			diagonal, column[k] = column[k], edits
		}
		best = min(best, column[len(w)])
	}
	return 1 - float64(best)/float64(len(w))
}

var plain = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'", "–", "-", "—", "-")

// normal is the form in which words are compared: lower case, blanks collapsed, plain quotes.
func (l Lines) normal(text string) string {
	return strings.Join(strings.Fields(plain.Replace(strings.ToLower(l.form(text)))), " ")
}

func letters(text string) int {
	n := 0
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// digits are the runs of digits in a text.
func digits(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// paddings are words that open an answer and say nothing by themselves. Models judge a text of nothing else as right: up
// to 80 to 90 % of the time (judgement §3, 2507.08794, where most of them come from).
var paddings = strings.Fields(`solution answer result response output final thought thoughts thinking process let's lets let us solve this problem
	step by the is are here below follows following as of my your our and a an to i will reasoning explanation conclusion summary report text document
	content lösung antwort ergebnis respuesta solución solution réponse résultat 解 答案 解答 かいせつ 答え todo tbd placeholder end start begin`)

// IsEmpty says whether a text holds nothing to judge: no letter and no digit, or only words that open an answer, such as
// "Solution:" or "Let's solve this problem step by step."
func IsEmpty(text string) bool {
	for _, w := range strings.FieldsFunc(plain.Replace(strings.ToLower(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	}) {
		w = strings.Trim(w, "'")
		if w != "" && !slices.Contains(paddings, w) && !isFiller(w) {
			return false
		}
	}
	return true
}

// isFiller says whether a word is one letter over and over, as in "xxxx".
func isFiller(w string) bool {
	first, size := utf8.DecodeRuneInString(w)
	return utf8.RuneCountInString(w) > 2 && unicode.IsLetter(first) && strings.Count(w, w[:size]) == utf8.RuneCountInString(w)
}

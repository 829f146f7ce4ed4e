package answer

import (
	"regexp/syntax"
	"strings"
)

// fromPattern makes the shortest plain string that the pattern matches; variant varies what can vary, so that a list
// need not repeat itself. It returns "" for a pattern that Go cannot read.
func fromPattern(pattern string, variant int) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var out strings.Builder
	writePattern(&out, re.Simplify(), &variant)
	return out.String()
}

func writePattern(out *strings.Builder, re *syntax.Regexp, variant *int) {
	switch re.Op {
	case syntax.OpLiteral:
		out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		out.WriteRune(fromClass(re.Rune, variant))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte('a')
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			writePattern(out, sub, variant)
		}
	case syntax.OpAlternate:
		i := *variant % len(re.Sub)
		*variant /= len(re.Sub)
		writePattern(out, re.Sub[i], variant)
	case syntax.OpRepeat:
		for range re.Min {
			writePattern(out, re.Sub[0], variant)
		}
	}
}

// fromClass picks a character of a class, a letter or digit if it has one.
func fromClass(pairs []rune, variant *int) rune {
	var plain []rune
	for i := 0; i+1 < len(pairs); i += 2 {
		for r := pairs[i]; r <= pairs[i+1] && r < 127 && len(plain) < 128; r++ {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
				plain = append(plain, r)
			}
		}
	}
	if len(plain) == 0 {
		return pairs[0]
	}
	r := plain[*variant%len(plain)]
	*variant /= len(plain)
	return r
}

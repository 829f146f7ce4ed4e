package answer

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text answers in prose: key sentences of the prompt's material, in their order.
func Text(req Request) string {
	s := read(req)
	if text := s.judgement(); text != "" {
		return text
	}
	best := s.key(3)
	if len(best) == 0 {
		return "There is nothing to work with: the request is empty."
	}
	return strings.Join(best, " ")
}

// judgement is the free answer to a question about numbered lines: it names them as a judge is asked to.
func (s *source) judgement() string {
	criterion := oneLine(section(s.req.Prompt, []string{"criterion"}))
	if !s.numbered || criterion == "" {
		return ""
	}
	q := s.quote(0)
	return fmt.Sprintf("Nothing stands against it at first sight. Line %d says %q, and that is what counts for: %s", q.number, clip(q.text, 80), clip(criterion, 160))
}

// Thoughts is what a thinking model writes before it answers.
func Thoughts(req Request) string {
	s := read(req)
	return "The request is about this: " + clip(s.goal, 160) + " I look at the material, pick what matters and answer."
}

// source is a request taken apart.
type source struct {
	req       Request
	goal      string     // what is wanted, one line
	subject   string     // the material, a part of the prompt
	sentences []string   // of the subject, or of the prompt if it has none
	lines     []quotable // of the subject
	numbered  bool       // the subject's lines have numbers in front
}

// quotable is a line of the subject that can be quoted.
type quotable struct {
	number int // the mark in front of it, or its place, from 1
	text   string
}

var (
	goalLabels    = []string{"goal", "objective", "task", "instruction"}
	subjectLabels = []string{"subject", "material", "document", "input", "item"}
	lineMark      = regexp.MustCompile(`^L?(\d{1,6})\s?[|:]\s?`)
	numberedLine  = regexp.MustCompile(`^L\d{4,6}\|`)
	bullet        = regexp.MustCompile(`^\s*(?:[-*•]|\d{1,2}[.)])\s+`)
)

func read(req Request) *source {
	s := &source{req: req}
	s.goal = oneLine(section(req.Prompt, goalLabels))
	s.subject = section(req.Prompt, subjectLabels)
	if s.subject == "" {
		s.subject = material(req.Prompt)
	}
	s.keepNumbered()
	if s.sentences = sentences(s.subject); len(s.sentences) == 0 {
		s.sentences = sentences(req.Prompt)
	}
	if s.goal == "" {
		if all := sentences(req.Prompt); len(all) > 0 {
			s.goal = all[0]
		} else {
			s.goal = oneLine(req.Prompt)
		}
	}
	s.lines = quotables(s.subject)
	return s
}

// keepNumbered leaves out what stands around the lines of a subject whose lines are numbered.
func (s *source) keepNumbered() {
	var kept []string
	for line := range strings.Lines(s.subject) {
		if numberedLine.MatchString(line) {
			kept = append(kept, line)
		}
	}
	if s.numbered = kept != nil; s.numbered {
		s.subject = strings.Join(kept, "")
	}
}

// section finds what stands under the first of the labels that occurs: in a tag, or after a heading or a label with a
// colon, up to the next empty line before a heading.
func section(prompt string, labels []string) string {
	for _, label := range labels {
		if _, rest, ok := strings.Cut(prompt, "<"+label); ok {
			if _, inside, ok := strings.Cut(rest, ">"); ok {
				if body, _, ok := strings.Cut(inside, "</"+label); ok && strings.TrimSpace(body) != "" {
					return strings.TrimSpace(body)
				}
			}
		}
		if body := labelled(prompt, label); body != "" {
			return body
		}
	}
	return ""
}

// labelled finds the text after a line such as "## Goal", "Goal:" or "Goal: write it".
func labelled(prompt, label string) string {
	lines := strings.Split(prompt, "\n")
	for i, l := range lines {
		head := strings.ToLower(strings.Trim(l, " \t\r#*"))
		rest, ok := strings.CutPrefix(head, label)
		if !ok || !(rest == "" || strings.HasPrefix(rest, ":")) || rest == "" && !strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		if _, after, _ := strings.Cut(l, ":"); strings.TrimSpace(after) != "" {
			return strings.TrimSpace(after)
		}
		end := i + 1
		for end < len(lines) && !(isHeading(lines[end]) && strings.TrimSpace(lines[end-1]) == "") {
			end++
		}
		if body := strings.TrimSpace(strings.Join(lines[i+1:end], "\n")); body != "" {
			return body
		}
	}
	return ""
}

func isHeading(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "#") || strings.HasSuffix(line, ":") && len(line) < 40
}

// material is the prompt without the schema that a prompt may spell out and without its first paragraph, which is the
// instruction, if something is left.
func material(prompt string) string {
	prompt = strings.TrimSpace(withoutSchema(prompt))
	if _, rest, ok := strings.Cut(prompt, "\n\n"); ok && len(strings.TrimSpace(rest)) >= 20 {
		return strings.TrimSpace(rest)
	}
	if _, rest, ok := strings.Cut(prompt, "\n"); ok && len(strings.TrimSpace(rest)) >= 20 {
		return strings.TrimSpace(rest)
	}
	return prompt
}

// withoutSchema drops lines that are JSON objects, and the line that introduces them.
func withoutSchema(prompt string) string {
	var kept []string
	for line := range strings.SplitSeq(prompt, "\n") {
		if strings.HasPrefix(line, "{") && json.Valid([]byte(line)) {
			if n := len(kept); n > 0 && strings.HasSuffix(kept[n-1], ":") {
				kept = kept[:n-1]
			}
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// sentences splits prose at line ends and full stops; fragments of markup and code are left out.
func sentences(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = clean(line)
		for line != "" {
			end := sentenceEnd(line)
			if s := strings.TrimSpace(line[:end]); worth(s) {
				out = append(out, s)
			}
			line = strings.TrimSpace(line[end:])
		}
	}
	return out
}

// sentenceEnd is where the first sentence of a line ends.
func sentenceEnd(line string) int {
	for i := 0; i+1 < len(line); i++ {
		if strings.IndexByte(".!?", line[i]) >= 0 && line[i+1] == ' ' {
			return i + 1
		}
	}
	return len(line)
}

func clean(line string) string {
	line = lineMark.ReplaceAllString(strings.TrimSpace(line), "")
	line = bullet.ReplaceAllString(line, "")
	return strings.TrimSpace(strings.TrimLeft(line, "#>/ \t"))
}

// worth says whether a sentence says something: three words and mostly letters.
func worth(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLetter(r) || r == ' ' {
			letters++
		}
	}
	return len(strings.Fields(s)) >= 3 && letters*4 >= utf8.RuneCountInString(s)*3
}

// key picks n sentences whose words recur, in their order; the seed breaks near ties.
func (s *source) key(n int) []string {
	counts := map[string]int{}
	for _, sentence := range s.sentences {
		for _, w := range strings.Fields(strings.ToLower(sentence)) {
			counts[w]++
		}
	}
	type scored struct {
		at    int
		score float64
	}
	var all []scored
	for i, sentence := range s.sentences {
		score := pick(s.req.Seed, sentence) // 0 to 1
		for _, w := range strings.Fields(strings.ToLower(sentence)) {
			if len(w) > 4 && counts[w] > 1 {
				score++
			}
		}
		all = append(all, scored{i, score / float64(4+len(strings.Fields(sentence)))})
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return a.at - b.at
	})
	all = all[:min(n, len(all))]
	slices.SortFunc(all, func(a, b scored) int { return a.at - b.at })
	var out []string
	for _, x := range all {
		out = append(out, s.sentences[x.at])
	}
	return out
}

// sentence returns the i-th sentence, counted round.
func (s *source) sentence(i int) string {
	if len(s.sentences) == 0 {
		return "Nothing is known about it"
	}
	return s.sentences[i%len(s.sentences)]
}

// quotables are the lines of the material that have words, without their marks.
func quotables(subject string) []quotable {
	var out []quotable
	n := 0
	for line := range strings.Lines(subject) {
		n++
		q := quotable{number: n, text: strings.TrimSpace(line)}
		if m := lineMark.FindStringSubmatch(q.text); m != nil {
			q.number, _ = strconv.Atoi(m[1]) // at most six digits
			q.text = strings.TrimSpace(q.text[len(m[0]):])
		}
		if words := strings.IndexFunc(q.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }); words >= 0 && !strings.HasPrefix(q.text, "```") {
			out = append(out, q)
		}
	}
	return out
}

// quote returns the i-th quotable line, counted round; lines that are prose come first.
func (s *source) quote(i int) quotable {
	var prose []quotable
	for _, q := range s.lines {
		if worth(q.text) {
			prose = append(prose, q)
		}
	}
	if len(prose) == 0 {
		prose = s.lines
	}
	if len(prose) == 0 {
		return quotable{number: 1, text: oneLine(s.req.Prompt)}
	}
	return prose[i%len(prose)]
}

// clip shortens to at most n characters, at a word if it can. What is left is a prefix of s.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	short := string([]rune(s)[:max(n, 0)])
	if i := strings.LastIndexByte(short, ' '); i > len(short)/2 {
		short = short[:i]
	}
	return short
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// pick maps its arguments to [0, 1), evenly enough for choices.
func pick(seed int64, parts ...string) float64 {
	h := fnv.New64a()
	h.Write(strconv.AppendInt(nil, seed, 10))
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd // the finaliser of MurmurHash3 spreads FNV's weak high bits
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

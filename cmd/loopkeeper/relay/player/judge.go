package player

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// numbered is a line of a subject as judges are shown it.
var numbered = regexp.MustCompile(`(?m)^L(\d+)\|[ \t]?(.*)$`)

// judge answers a criterion: rightly, but for misses and alarms, and with a line that is there.
func (p *Player) judge(a ollamatest.Asked, time int) string {
	lines := numbered.FindAllStringSubmatch(a.Prompt, -1)
	result := judges.CannotTell
	if s, known := p.subject(a.Prompt, lines); known {
		wrong := p.rates.Alarm
		result = s.Expected
		if s.Expected == judges.NotMet {
			wrong = p.rates.Miss
		}
		dice := p.dice("judge", time, a.Prompt)
		switch {
		case dice < p.rates.Abstain:
			result = judges.CannotTell
		case dice < p.rates.Abstain+wrong:
			result = map[string]string{judges.Met: judges.NotMet, judges.NotMet: judges.Met}[s.Expected]
		}
	}
	type line struct {
		Line  int    `json:"a_line"`
		Words string `json:"b_words"`
	}
	evidence := []line{}
	for _, l := range lines {
		if words := strings.Fields(l[2]); len(words) >= 3 && len(evidence) == 0 {
			n, _ := strconv.Atoi(l[1])
			evidence = append(evidence, line{n, strings.Join(words[:3], " ")})
		}
	}
	return encode(struct {
		Evidence []line `json:"a_evidence"`
		Against  string `json:"b_against"`
		Reason   string `json:"c_reason"`
		Result   string `json:"d_result"`
	}{evidence, "One could read it otherwise.", "This line shows it well enough.", result})
}

// subject is the one whose lines and whose criterion a prompt has.
func (p *Player) subject(prompt string, lines [][]string) (found judges.Subject, known bool) {
	var shown []string
	for _, l := range lines {
		shown = append(shown, strings.TrimSpace(l[2]))
	}
	text := plain(strings.Join(shown, "\n"))
	for _, s := range p.set {
		if plain(s.Subject) == text && strings.Contains(plain(prompt), plain(s.Criterion)) {
			return s, true
		}
	}
	return found, false
}

func plain(text string) string { return strings.Join(strings.Fields(text), " ") }

// Package mask takes out of texts what says whose machine they come from: host and user names, serial numbers, UUIDs, process
// names, network addresses. The same value gets the same mask everywhere, and a mask has the shape of what it stands for, so
// that what parses the text still can.
package mask

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mask first learns secrets from all texts, and then masks them in any. The zero value is ready; not safe for concurrent use.
type Mask struct {
	learned   map[string]kind   // secrets in lower case that have no mask yet
	masks     map[string]string // by secret in lower case
	inPlace   map[string]string // names that are masked only where the text says that they are, by kind and name
	processes map[string]string
	kinds     map[string]kind // of the secrets in masks
	seen      map[string]kind // masks that stand in a text
	count     map[kind]int
	pattern   *regexp.Regexp // of all secrets; nil before the first
}

// kind is a sort of secret. Each has its own mask.
type kind int

const (
	kindUUID kind = iota
	kindSerial
	kindHost
	kindUser
	kindMAC
	kindIPv4
	kindIPv6
	kindProcess
)

// Host learns that a word is the machine's name.
func (m *Mask) Host(name string) {
	if ownMask.MatchString(name) {
		return
	}
	if m.word(kindHost, name) {
		first, _, _ := strings.Cut(name, ".")
		m.word(kindHost, first)
		return
	}
	m.onlyInPlace(kindHost, name)
}

// User learns that a word is somebody's name on the machine.
func (m *Mask) User(name string) {
	if !ownMask.MatchString(name) && !m.word(kindUser, name) {
		m.onlyInPlace(kindUser, name)
	}
}

// onlyInPlace learns a name that is too short or too ordinary to be masked wherever it stands.
func (m *Mask) onlyInPlace(k kind, name string) {
	key := placed(k, name)
	if name == "" || everybodys[strings.ToLower(name)] || m.inPlace[key] != "" {
		return
	}
	if m.inPlace == nil {
		m.inPlace = map[string]string{}
	}
	m.inPlace[key] = m.next(k, name)
}

func placed(k kind, name string) string { return fmt.Sprint(int(k), " ", strings.ToLower(name)) }

// everybodys are names that say nothing about a machine.
var everybodys = map[string]bool{"localhost": true, "root": true, "public": true, "shared": true, "default": true, "ollama": true, "loopkeeper": true}

var ownMask = regexp.MustCompile(`^(?:host|user)-[0-9]+$`)

// Text returns the text with everything masked that was learned.
func (m *Mask) Text(text string) string {
	text = m.maskInPlace(m.maskProcesses(text))
	m.number()
	if m.pattern == nil {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range m.pattern.FindAllStringIndex(text, -1) {
		secret := strings.ToLower(text[at[0]:at[1]])
		if !wordAt(text, at[0], at[1]) && !m.telling(secret) {
			continue
		}
		b.WriteString(text[end:at[0]])
		b.WriteString(m.see(m.kinds[secret], cmp.Or(m.masks[secret], "masked"))) // letters that only folding makes equal
		end = at[1]
	}
	b.WriteString(text[end:])
	return b.String()
}

// telling says whether a secret tells whose the machine is also where it is a part of a word, as in "gwendolynspc".
func (m *Mask) telling(secret string) bool {
	const long = 8 // characters that hardly stand together by chance
	k := m.kinds[secret]
	return k == kindUUID || (k == kindHost || k == kindUser) && len(secret) >= long
}

// maskInPlace masks names that are too short or too ordinary to be masked anywhere else.
func (m *Mask) maskInPlace(text string) string {
	if len(m.inPlace) == 0 {
		return text
	}
	for _, place := range []struct {
		kind    kind
		pattern *regexp.Regexp
		names   []int // groups of the pattern, of which one is a name
	}{{kindHost, hostPattern, []int{1}}, {kindUser, userPattern, []int{2}}, {kindUser, homePattern, []int{2, 3}}} {
		var b strings.Builder
		end := 0
		for _, at := range place.pattern.FindAllStringSubmatchIndex(text, -1) {
			for _, group := range place.names {
				from, to := at[2*group], at[2*group+1]
				if from < 0 {
					continue
				}
				if masked := m.inPlace[placed(place.kind, text[from:to])]; masked != "" {
					b.WriteString(text[end:from] + m.see(place.kind, masked))
					end = to
				}
			}
		}
		text = b.String() + text[end:]
	}
	return text
}

// number gives what was learned its masks, in the order of the secrets: what is sorted by a secret, as devices are by UUID,
// stays in its order.
func (m *Mask) number() {
	if len(m.learned) == 0 {
		return
	}
	if m.masks == nil {
		m.masks, m.kinds = map[string]string{}, map[string]kind{}
	}
	for _, secret := range slices.Sorted(maps.Keys(m.learned)) {
		m.masks[secret], m.kinds[secret] = m.next(m.learned[secret], secret), m.learned[secret]
	}
	clear(m.learned)
	m.pattern = anyOf(slices.Collect(maps.Keys(m.masks)))
}

// anyOf matches all secrets, the longest first, so that one pass masks them and no mask is masked again.
func anyOf(secrets []string) *regexp.Regexp {
	slices.SortFunc(secrets, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	for i, s := range secrets {
		secrets[i] = regexp.QuoteMeta(s)
	}
	return regexp.MustCompile(`(?i:` + strings.Join(secrets, "|") + `)`)
}

// wordAt says whether text[from:to] is not the middle of a longer word; the 0x of a number is none of it.
func wordAt(text string, from, to int) bool {
	if from >= 2 && strings.EqualFold(text[from-2:from], "0x") {
		from -= 2
	}
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return (from == 0 || !isWord(before)) && (to == len(text) || !isWord(after))
}

func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// add learns a secret.
func (m *Mask) add(k kind, secret string) {
	key := strings.ToLower(secret)
	if _, known := m.masks[key]; known {
		return
	}
	if m.learned == nil {
		m.learned = map[string]kind{}
	}
	if _, known := m.learned[key]; !known {
		m.learned[key] = k
	}
}

// next is a new mask of this kind, in the shape of the secret.
func (m *Mask) next(k kind, secret string) string {
	if m.count == nil {
		m.count = map[kind]int{}
	}
	m.count[k]++
	n := m.count[k]
	switch k {
	case kindUUID:
		return fmt.Sprintf("00000000-0000-0000-0000-%012d", n)
	case kindSerial:
		return serialMask(secret, n)
	case kindHost:
		return fmt.Sprintf("host-%d", n)
	case kindUser:
		return fmt.Sprintf("user-%d", n)
	case kindMAC:
		return fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8&0xff, n&0xff)
	case kindIPv4:
		return fmt.Sprintf("192.0.2.%d", n&0xff) // for documentation, RFC 5737
	case kindIPv6:
		return fmt.Sprintf("2001:db8::%x", n) // for documentation, RFC 3849
	}
	return fmt.Sprintf("process-%d", n)
}

// serialMask has the length of the secret and only decimal digits, the first of which is 1: a number in any base, in any
// syntax, and no larger than the secret may have been.
func serialMask(secret string, n int) string {
	return "1" + fmt.Sprintf("%0*d", len(secret)-1, n)
}

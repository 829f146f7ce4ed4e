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
	inPlace   map[string]string // host names that are masked only where the text says that they are
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
	if m.word(kindHost, name) {
		first, _, _ := strings.Cut(name, ".")
		m.word(kindHost, first)
		return
	}
	key := strings.ToLower(name)
	if name == "" || key == "localhost" || hostMask.MatchString(name) || m.inPlace[key] != "" {
		return
	}
	if m.inPlace == nil {
		m.inPlace = map[string]string{}
	}
	m.inPlace[key] = m.next(kindHost, name)
}

var hostMask = regexp.MustCompile(`^host-[0-9]+$`)

// User learns that a word is somebody's name on the machine.
func (m *Mask) User(name string) { m.word(kindUser, name) }

// Text returns the text with everything masked that was learned.
func (m *Mask) Text(text string) string {
	text = m.maskHosts(m.maskProcesses(text))
	m.number()
	if m.pattern == nil {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range m.pattern.FindAllStringIndex(text, -1) {
		if !wordAt(text, at[0], at[1]) {
			continue
		}
		b.WriteString(text[end:at[0]])
		secret := strings.ToLower(text[at[0]:at[1]])
		b.WriteString(m.see(m.kinds[secret], cmp.Or(m.masks[secret], "masked"))) // letters that only folding makes equal
		end = at[1]
	}
	b.WriteString(text[end:])
	return b.String()
}

// maskHosts masks host names that are too short or too ordinary to be masked anywhere else.
func (m *Mask) maskHosts(text string) string {
	if len(m.inPlace) == 0 {
		return text
	}
	return hostPattern.ReplaceAllStringFunc(text, func(found string) string {
		name := hostPattern.FindStringSubmatch(found)[1]
		if masked := m.inPlace[strings.ToLower(name)]; masked != "" {
			return strings.TrimSuffix(found, name) + m.see(kindHost, masked)
		}
		return found
	})
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

// wordAt says whether text[from:to] is not the middle of a longer word.
func wordAt(text string, from, to int) bool {
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
	prefix := ""
	if len(secret) > 2 && strings.EqualFold(secret[:2], "0x") {
		prefix, secret = secret[:2], secret[2:]
	}
	return prefix + "1" + fmt.Sprintf("%0*d", len(secret)-1, n)
}

package mask

import (
	"net/netip"
	"path"
	"regexp"
	"strings"
)

// secretKey is the name of a field whose value says which machine or part it is.
const secretKey = `(?:serial(?:[ _-]?(?:number|num|no))?|unique[ _-]?id|pdi|asset[ _-]?tag|udid|machine[ _-]?id|boot[ _-]?id|hive[ _-]?id)`

var (
	uuidPattern = regexp.MustCompile(`(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}`) // in names of control groups
	longHex     = regexp.MustCompile(`(?i)[0-9a-f]{32,64}`)                                                                         // machine and container ids
	macPattern  = regexp.MustCompile(`(?i)[0-9a-f]{2}(?::[0-9a-f]{2})+|[0-9a-f]{2}(?:-[0-9a-f]{2})+`)
	ipv4Pattern = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)+`)
	ipv6Pattern = regexp.MustCompile(`(?i)[0-9a-f]*(?::[0-9a-f]*){2,}`)
	homePattern = regexp.MustCompile(`(?i)([/\\]+(?:home|Users)[/\\]+)(?:([^/\\\r\n"'<>:;,|]+)(?:[/\\])|([^/\\\s"'<>:;,|]+))`) // names with spaces only before what follows them
	keyPattern  = regexp.MustCompile(`(?i)` + secretKey + `["']?\s*[:=>\s]\s*["']?((?:0x)?[0-9a-z][0-9a-z-]*)`)
	keyName     = regexp.MustCompile(`(?i)` + secretKey + `|uuid`)
	hostPattern = regexp.MustCompile(`(?i)"?\b(?:local_?)?(?:host|computer)_?name"?\s*[:=]\s*"?([a-z0-9][a-z0-9._-]*)`)
	userPattern = regexp.MustCompile(`(?i)("?\buser_?name"?\s*[:=]\s*"?)([a-z0-9][a-z0-9._-]*)`)
)

// Learn takes the secrets out of a text.
func (m *Mask) Learn(text string) {
	for _, id := range uuidPattern.FindAllString(text, -1) {
		m.uuid(id)
	}
	for _, at := range longHex.FindAllStringIndex(text, -1) {
		if wordAt(text, at[0], at[1]) {
			m.serial(text[at[0]:at[1]])
		}
	}
	for _, match := range keyPattern.FindAllStringSubmatch(text, -1) {
		m.serial(match[1])
	}
	m.learnColumns(text)
	m.learnAddresses(text)
	for _, match := range homePattern.FindAllStringSubmatch(text, -1) {
		m.User(match[2] + match[3])
	}
	for _, match := range hostPattern.FindAllStringSubmatch(text, -1) {
		m.Host(match[1])
	}
	for _, match := range userPattern.FindAllStringSubmatch(text, -1) {
		m.User(match[2])
	}
}

// LearnFile takes the secrets out of a file, whose name may say that all of it is one.
func (m *Mask) LearnFile(name, text string) {
	whole := strings.Trim(text, " \t\r\n\x00")
	switch base := path.Base(name); {
	case base == "hostname":
		m.Host(whole)
	case base == "machine-id" || keyName.MatchString(base):
		m.serial(whole)
	}
	m.Learn(text)
	m.Learn(name)
}

// learnColumns reads CSV, whose header names a column of secrets.
func (m *Mask) learnColumns(text string) {
	var header []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if len(cells) > 1 && keyName.MatchString(line) {
			header = cells
			continue
		}
		if len(cells) != len(header) {
			continue
		}
		for i, name := range header {
			if keyName.MatchString(name) {
				m.serial(strings.Trim(cells[i], ` "`))
			}
		}
	}
}

// learnAddresses finds the network's addresses among the many things that look like one: PCI addresses, versions, times.
func (m *Mask) learnAddresses(text string) {
	for _, at := range macPattern.FindAllStringIndex(text, -1) {
		if mac := text[at[0]:at[1]]; len(mac) == len("02:00:00:00:00:01") && strings.Trim(mac, "0:-") != "" && wordAt(text, at[0], at[1]) {
			m.add(kindMAC, mac)
		}
	}
	for _, at := range ipv4Pattern.FindAllStringIndex(text, -1) {
		ip, err := netip.ParseAddr(text[at[0]:at[1]])
		if err == nil && !ip.IsLoopback() && !ip.IsUnspecified() && wordAt(text, at[0], at[1]) && !versionBefore(text[:at[0]]) {
			m.add(kindIPv4, text[at[0]:at[1]])
		}
	}
	for _, at := range ipv6Pattern.FindAllStringIndex(text, -1) {
		found := text[at[0]:at[1]]
		groups := strings.FieldsFunc(found, func(r rune) bool { return r == ':' })
		ip, err := netip.ParseAddr(found)
		told := len(groups) > 2 || len(groups) == 2 && (ip.IsPrivate() || ip.IsLinkLocalUnicast())
		if err == nil && told && !ip.IsLoopback() {
			m.add(kindIPv6, found)
		}
	}
}

var versionWord = regexp.MustCompile(`(?i)(?:version|driver|firmware|bios|release)["'\s:=>]*$`)

// versionBefore says whether the text before a number calls it a version: Windows' have four parts, as an address has.
func versionBefore(text string) bool { return versionWord.MatchString(text[max(len(text)-40, 0):]) }

// uuid learns an id, unless it is no secret: one that was masked to zeros, or the names of Windows' device classes.
func (m *Mask) uuid(id string) {
	lower := strings.ToLower(id)
	if strings.Trim(lower, "0-") != "" && !strings.HasSuffix(lower, "-11ce-bfc1-08002be10318") {
		m.add(kindUUID, id)
	}
}

// serial learns a value that is long enough to tell machines apart and cannot be an ordinary word or number.
func (m *Mask) serial(value string) {
	if len(value) > 2 && strings.EqualFold(value[:2], "0x") { // one tool writes it so, and another without
		value = value[2:]
	}
	digits := strings.Trim(value, "0123456789") == ""
	has := strings.ContainsAny(value, "0123456789")
	plain := strings.IndexFunc(value, func(r rune) bool { return !isWord(r) && r != '-' }) < 0
	switch {
	case uuidPattern.MatchString(value):
		m.uuid(uuidPattern.FindString(value))
	case !plain, !has, len(value) < 6, digits && len(value) < 8, strings.Trim(value, "0xX-") == "":
	default:
		m.add(kindSerial, value)
	}
}

// ordinary are names that many machines have, and that texts have in another meaning.
var ordinary = map[string]bool{
	"localhost": true, "localdomain": true, "host": true, "linux": true, "ubuntu": true, "debian": true, "fedora": true, "arch": true,
	"windows": true, "darwin": true, "root": true, "admin": true, "user": true, "public": true, "shared": true, "default": true,
	"nvidia": true, "amd": true, "intel": true, "apple": true, "gpu": true, "card": true, "device": true, "driver": true, "memory": true,
	"none": true, "null": true, "true": true, "false": true, "unknown": true, "ollama": true, "loopkeeper": true, "jetson": true, "tegra": true, "orin": true,
	// Names of people and machines that files, fields and chips have, too: memory.max, gpu free, Grace Hopper.
	"max": true, "min": true, "mark": true, "total": true, "used": true, "free": true, "name": true, "current": true, "stat": true,
	"temp": true, "power": true, "version": true, "class": true, "proc": true, "sys": true, "bus": true, "pci": true, "drm": true,
	"kfd": true, "vram": true, "gtt": true, "mem": true, "info": true, "usage": true, "limit": true, "docker": true, "worker": true,
	"thor": true, "xavier": true, "nano": true, "grace": true, "hopper": true, "ada": true, "lovelace": true, "ampere": true,
	"turing": true, "volta": true, "pascal": true, "maxwell": true, "kepler": true, "fermi": true, "blackwell": true, "rubin": true,
	"tesla": true, "quadro": true, "geforce": true, "radeon": true, "vega": true, "navi": true, "phoenix": true, "raphael": true,
	"renoir": true, "cezanne": true, "picasso": true, "rembrandt": true, "lucienne": true, "barcelo": true, "mendocino": true,
	"strix": true, "halo": true, "hawk": true, "raven": true, "granite": true, "krackan": true, "carrizo": true, "stoney": true,
	"arc": true, "iris": true, "battlemage": true, "alchemist": true, "metal": true, "studio": true, "mini": true, "pro": true,
}

// word learns a name, unless it is too short or ordinary: masking it would change what the text says.
func (m *Mask) word(k kind, name string) bool {
	letters := strings.IndexFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127 }) >= 0
	if len(name) < 3 || !letters || ordinary[strings.ToLower(name)] {
		return false
	}
	m.add(k, name)
	return true
}

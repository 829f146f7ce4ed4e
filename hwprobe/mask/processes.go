package mask

import (
	"path"
	"regexp"
	"strings"
)

// processPatterns are the places where process names and command lines stand, in the second group. They are masked there
// only: a program's name, such as a vendor tool's own, may stand elsewhere in another meaning.
var processPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(<process_name>)([^<]+)(</process_name>)`),
	regexp.MustCompile(`(?i)("(?:process_?name|cmd_?line|command_?line|comm)"\s*:\s*")([^"]+)(")`),
	regexp.MustCompile(`("IOUserClientCreator"\s*=\s*"pid \d+, )([^"]+)(")`),                                       // ioreg
	regexp.MustCompile(`(Process ID[^\n]*\n[^\n]*Type[^\n]*\n[^\n]*Name\s*: *)([^\r\n]+)()`),                       // nvidia-smi -q
	regexp.MustCompile(`(?m)(^\|\s+\d+\s+(?:\S+\s+\S+\s+)?\d+\s+(?:C|G|C\+G|M\+C)\s+)(\S[^|]*?)(\s+\S+\s*\|\s*$)`), // nvidia-smi's table
}

// processFile is a file that tells what a process is, or what it was started with.
var processFile = regexp.MustCompile(`^proc/[^/]+/(?:task/[^/]+/)?(?:comm|cmdline|environ)$`)

// mountFile lists what is mounted where.
var mountFile = regexp.MustCompile(`^proc/[^/]+/mount(?:info|s)$`)

// File returns a file's text with everything masked that was learned, all of it where the file is about a process, and without
// the mounts of disks and shares, whose names are nobody's business.
func (m *Mask) File(name, text string) string {
	whole := strings.TrimSpace(text)
	switch masked := m.inPlace[placed(kindHost, whole)]; {
	case processFile.MatchString(name):
		return m.process(text)
	case mountFile.MatchString(name):
		return m.Text(groupMounts(text))
	case path.Base(name) == "hostname" && masked != "":
		return m.see(kindHost, masked) + "\n"
	}
	return m.Text(text)
}

// groupMounts leaves only the mounts of control groups, which say where a limit of memory stands.
func groupMounts(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, " cgroup") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (m *Mask) maskProcesses(text string) string {
	for _, pattern := range processPatterns {
		text = pattern.ReplaceAllStringFunc(text, func(found string) string {
			part := pattern.FindStringSubmatch(found)
			return part[1] + m.process(part[2]) + part[3]
		})
	}
	return text
}

// process is the mask of a process name; what says that there is none stays.
func (m *Mask) process(name string) string {
	trimmed := strings.TrimSpace(name)
	if trimmed == "" || trimmed == "-" || strings.Contains(trimmed, "N/A") || strings.HasPrefix(trimmed, "[") || masked.MatchString(trimmed) {
		return name
	}
	if m.processes == nil {
		m.processes = map[string]string{}
	}
	if m.processes[trimmed] == "" {
		m.processes[trimmed] = m.next(kindProcess, trimmed)
	}
	return m.see(kindProcess, m.processes[trimmed])
}

var masked = regexp.MustCompile(`^process-[0-9]+$`)

package mask

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// masked learns from a text and masks it.
func maskedText(text string) string {
	var m Mask
	m.Learn(text)
	return m.Text(text)
}

func TestSecretsAreMaskedInTheirShape(t *testing.T) {
	for text, want := range map[string]string{
		"GPU-4f1c2b3a-1122-3344-5566-77889900aabb, MIG-4F1C2B3A-1122-3344-5566-77889900AABB": "GPU-00000000-0000-0000-0000-000000000001, MIG-00000000-0000-0000-0000-000000000001",
		"MIG-GPU-4f1c2b3a-1122-3344-5566-77889900aabb/3/0":                                   "MIG-GPU-00000000-0000-0000-0000-000000000001/3/0",
		`"Unique ID": "0x8c11bc1e10df3aa9", "x": "8c11bc1e10df3aa9"`:                         `"Unique ID": "0x1000000000000001", "x": "1000000000000001"`,
		"/docker/libpod kubepods-pod4f1c2b3a_1122_3344_5566_77889900aabb.slice":              "/docker/libpod kubepods-pod00000000-0000-0000-0000-000000000001.slice",
		"GPU-4F1C2B3A1122334455667788" + "9900AABB":                                          "GPU-10000000000000000000000000000001",
		`C:\Users\Anna Smith\AppData\x, says anna smith`:                                     `C:\Users\user-1\AppData\x, says user-1`,
		`"C:\\Users\\anna.smith\\x"`:                                                         `"C:\\Users\\user-1\\x"`,
		`"IOUserClientCreator" = "pid 456, Annas Editor"`:                                    `"IOUserClientCreator" = "pid 456, process-1"`,
		"fd12:3456::5 and fe80::7 and cafe::":                                                "2001:db8::1 and 2001:db8::2 and cafe::",
		`{"hostname":"ANNAS-LAPTOP"} annas-laptop.local, annas-laptop_2, myannas-laptops`:    `{"hostname":"host-1"} host-1.local, host-1_2, myhost-1s`,
		"/home/max/x: the limit is in memory.max":                                            "/home/user-1/x: the limit is in memory.max",
		"/home/al/x: also al":                                                                "/home/user-1/x: also al",
		`{"hostname":"thor"} NVIDIA Jetson AGX Thor`:                                         `{"hostname":"host-1"} NVIDIA Jetson AGX Thor`,
		"GPU[0]\t\t: Unique ID: 0x8c11bc1e10df3aa9":                                          "GPU[0]\t\t: Unique ID: 0x1000000000000001",
		"GPU[0]\t\t: Serial Number: 692251001124":                                            "GPU[0]\t\t: Serial Number: 100000000001",
		"        ASIC_SERIAL: 0xB3B2D1A5C6E7F809":                                            "        ASIC_SERIAL: 0x1000000000000001",
		`"board": {"product_serial": "PCB052308-0042"}`:                                      `"board": {"product_serial": "10000000000001"}`,
		"Serial Number                         : 1320621012345":                              "Serial Number                         : 1000000000001",
		"<serial>1320621012345</serial>":                                                     "<serial>1000000000001</serial>",
		"GPU PDI : 0x29af3bca4f1c2b3a":                                                       "GPU PDI : 0x1000000000000001",
		"device,Serial Number\ncard0,692251001124\ncard1,N/A\n":                              "device,Serial Number\ncard0,100000000001\ncard1,N/A\n",
		"/home/waldo/x and C:\\Users\\waldo\\y, says waldo":                                  "/home/user-1/x and C:\\Users\\user-1\\y, says user-1",
		`{"hostname":"vm"} runs on vm`:                                                       `{"hostname":"host-1"} runs on vm`,
		`{"hostname":"den-2.example.org"} seen from den-2`:                                   `{"hostname":"host-2"} seen from host-1`,
		"link 3c-ec-ef-12-34-56 at 10.0.0.7, not 127.0.0.1":                                  "link 02:00:00:00:00:01 at 192.0.2.1, not 127.0.0.1",
		"fe80::1ff:fe23:4567:890a":                                                           "2001:db8::1",
		"0::/docker/" + strings.Repeat("0123456789abcdef", 4):                                "0::/docker/1" + strings.Repeat("0", 62) + "1",
		"<process_name>/usr/bin/python3</process_name><process_name>N/A</process_name>":      "<process_name>process-1</process_name><process_name>N/A</process_name>",
		"  Process ID : 1\n   Type : C\n   Name : python3 -m x\n   Used":                     "  Process ID : 1\n   Type : C\n   Name : process-1\n   Used",
		"|    0   N/A  N/A      1234      C   python3          123MiB |":                     "|    0   N/A  N/A      1234      C   process-1          123MiB |",
	} {
		if got := maskedText(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	for _, text := range []string{
		"00000000:0C:00.0, 0000:03:00.0, 4-2:1.0", "12:34:56", "2026-11-29 18:26:57",
		`"DriverVersion": "31.0.15.5161"`, "<vbios_version>96.00.89.00.01</vbios_version>", "Driver Version : 10.18.13.254",
		"/home/loopkeeper/x of /home/user-1", "{4d36e968-e325-11ce-bfc1-08002be10318}", "GPU-00000000-0000-0000-0000-000000000000",
		"Serial Number : N/A", "serial 0", "unique_id 0", "serial: To be filled by O.E.M.", "Serial Number : [N/A]",
		"12:cpu::/x\n0::/app/worker\n", "MemTotal:       24684084 kB", `{"hostname":"localhost"} on localhost`, "mem_info_vram_total 17163091968",
		"product_name: Radeon RX 7900 XT", "00-F0-FF-7F", "location_id 3072\ndomain 0\n",
	} {
		if got := maskedText(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestMountsOfDisksAreLeftOut(t *testing.T) {
	var m Mask
	const groups = "31 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	if got := m.File("proc/self/mountinfo", "26 1 8:1 / /media/waldos-disk rw - ext4 /dev/sda1 rw\n"+groups); got != groups {
		t.Errorf("got %s", got)
	}
}

func TestMasksAreInTheOrderOfTheSecrets(t *testing.T) {
	const first, second = "0f1c2b3a-1122-3344-5566-77889900aabb", "ff1c2b3a-1122-3344-5566-77889900aabb"
	got := maskedText(second + " " + first)
	if want := "00000000-0000-0000-0000-000000000002 00000000-0000-0000-0000-000000000001"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestASecretOfOneTextIsMaskedInAnother(t *testing.T) {
	var m Mask
	m.LearnFile("sys/class/dmi/id/product_serial", "PF0ABC12\n")
	m.LearnFile("etc/hostname", "pc\n")
	m.User("gwendolyn")
	if got := m.File("proc/sys/kernel/hostname", "pc\n"); got != "host-1\n" {
		t.Errorf("got %s", got)
	}
	if got := m.Text("PF0ABC12 of Gwendolyn, not PF0ABC123 nor gwendolyns"); got != "10000001 of user-1, not PF0ABC123 nor user-1s" {
		t.Errorf("got %s", got)
	}
}

// FuzzText holds that no text breaks the mask, and that a UUID never survives it.
func FuzzText(f *testing.F) {
	files, _ := filepath.Glob("../testdata/*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		const id = "4f1c2b3a-1122-3344-5566-77889900aabb"
		text += "\nGPU-" + id
		var m Mask
		m.Learn(text)
		if got := m.Text(text); strings.Contains(got, id) {
			t.Errorf("%q tells the UUID", got)
		}
	})
}

// Only what stood in a text counts: a name that was never there is no secret that was kept.
func TestWhatWasMaskedIsCounted(t *testing.T) {
	var m Mask
	m.User("gwendolyn")
	m.User("waldo")
	text := `{"hostname":"vm"} GPU-4f1c2b3a-1122-3344-5566-77889900aabb of waldo <process_name>python3</process_name> "Unique ID": "0x8c11bc1e10df3aa9"`
	m.Learn(text)
	m.Text(text)
	m.Text(text)
	if got, want := fmt.Sprint(m.Counts()), "[{host name 1} {user name 1} {UUID 1} {serial number 1} {process name 1}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

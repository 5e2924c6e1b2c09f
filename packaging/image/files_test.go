package image_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/must"
)

func TestWayIn(t *testing.T) {
	data, card := t.TempDir(), t.TempDir()
	left := func() (text string, info os.FileInfo) {
		t.Helper()
		if out, err := exec.Command("root/usr/lib/perch/way-in", data, card).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s", err, out)
		}
		file := filepath.Join(card, "perch-page.txt")
		written, err := os.ReadFile(file)
		must.Succeed(t, err)
		if info, err = os.Stat(file); err != nil {
			t.Fatal(err)
		}
		return string(written), info
	}
	token := func(text string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(filepath.Join(data, "admin-token"), []byte(text+"\n"), 0o600))
	}
	host := must.Value(os.Hostname())(t)
	token("first")
	text, before := left()
	if text != "The page is at http://"+host+".local:8003/\r\nIt asks for this admin token: first\r\n" {
		t.Errorf("it is %q", text)
	}
	if _, again := left(); !os.SameFile(before, again) {
		t.Error("the same is written again")
	}
	token("second")
	if text, after := left(); os.SameFile(before, after) || !strings.Contains(text, "second\r\n") {
		t.Errorf("after another token it is %q", text)
	}
	if entries, err := os.ReadDir(card); err != nil || len(entries) != 1 {
		t.Errorf("on the card are %v (%v)", entries, err)
	}
}

// TestManifest checks that Raspberry Pi Imager finds the boards in the manifest, and an image for each board.
func TestManifest(t *testing.T) {
	image := filepath.Join(t.TempDir(), "perch-pi_1.2.0.img")
	must.Succeed(t, errors.Join(os.WriteFile(image, []byte("unpacked"), 0o644), os.WriteFile(image+".xz", []byte("small"), 0o644)))
	text := must.Value(exec.CommandContext(t.Context(), "python3", "manifest.py", image, "https://perch.example/1.2.0/", "1700000000").Output())(t)
	var m struct {
		Imager struct {
			Devices []struct {
				Name, Description string
				Tags              []string
			}
		}
		List []struct {
			Name, Description, Icon, URL string
			Size                         int    `json:"extract_size"`
			Sum                          string `json:"extract_sha256"`
			Download                     int    `json:"image_download_size"`
			Date                         string `json:"release_date"`
			Format                       string `json:"init_format"`
			Devices                      []string
		} `json:"os_list"`
	}
	if err := json.Unmarshal(text, &m); err != nil || len(m.List) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	one, sum := m.List[0], sha256.Sum256([]byte("unpacked"))
	if one.Name == "" || one.Description == "" || one.Icon == "" || one.URL != "https://perch.example/1.2.0/perch-pi_1.2.0.img.xz" || one.Size != 8 ||
		one.Sum != hex.EncodeToString(sum[:]) || one.Download != 5 || one.Date != "2023-11-14" || one.Format != "rpi-preseed" {
		t.Errorf("the image is %+v", one)
	}
	if len(m.Imager.Devices) != 4 {
		t.Errorf("the boards are %+v", m.Imager.Devices)
	}
	for _, board := range m.Imager.Devices { // Imager filters its list in this way
		known := slices.ContainsFunc(board.Tags, func(tag string) bool { return slices.Contains(one.Devices, tag) })
		if board.Name == "" || board.Description == "" || !known {
			t.Errorf("for %+v Imager shows no image", board)
		}
	}
}

// TestBootFiles checks the files that only the firmware of a real board reads, and no emulator.
func TestBootFiles(t *testing.T) {
	c := newCard(t, "")
	config, cmdline := c.get("config.txt"), c.get("cmdline.txt")
	// The names of the device trees are those of upstream Linux, not those of Raspberry Pi's kernel.
	for _, want := range []string{"arm_64bit=1", "upstream_kernel=1", "kernel=vmlinuz-", "initramfs initrd.img-"} {
		if !strings.Contains(config, want) {
			t.Errorf("config.txt has no %s:\n%s", want, config)
		}
	}
	for _, want := range []string{"root=LABEL=PERCHROOT", "rootwait", "console=tty0"} {
		if !strings.Contains(cmdline, want) {
			t.Errorf("cmdline.txt has no %s: %s", want, cmdline)
		}
	}
	if strings.Contains(cmdline, "cma=64M") {
		t.Error("a Pi 4 does not boot with cma=64M")
	}
	files := c.do("mdir", "-b", "-i", c.file+"@@4M", "::")
	for board, tree := range map[string]string{"3B": "bcm2837-rpi-3-b.dtb", "3B+": "bcm2837-rpi-3-b-plus.dtb", "Zero 2 W": "bcm2837-rpi-zero-2-w.dtb",
		"4B": "bcm2711-rpi-4-b.dtb", "5": "bcm2712-rpi-5-b.dtb", "5, later": "bcm2712-d-rpi-5-b.dtb"} {
		if !strings.Contains(files, tree) {
			t.Errorf("there is no device tree for a Raspberry Pi %s (%s)", board, tree)
		}
	}
	for _, firmware := range []string{"bootcode.bin", "start.elf", "fixup.dat", "start4.elf", "fixup4.dat"} {
		if !strings.Contains(files, firmware) {
			t.Errorf("there is no %s", firmware)
		}
	}
}

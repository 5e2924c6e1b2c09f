package secret

import "testing"

func TestCredential(t *testing.T) {
	for _, c := range [][3]string{
		{"/etc/perch/secrets/home-assistant", "/run/credentials/perch.service", "/run/credentials/perch.service/secrets_home-assistant"},
		{"/etc/perch/secrets/../secrets/a", "/run/c", "/run/c/secrets_a"},
		{"/etc/perch/secrets/home-assistant", "", "/etc/perch/secrets/home-assistant"},
		{"/etc/perch/ha.token", "/run/c", "/etc/perch/ha.token"},
		{"/etc/perch/secrets", "/run/c", "/etc/perch/secrets"},
	} {
		if got := credential(c[0], c[1]); got != c[2] {
			t.Errorf("%q with %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

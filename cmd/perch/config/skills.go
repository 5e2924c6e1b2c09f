package config

import "perch/agent/skill"

// Skills says which skills the characters have.
type Skills struct {
	Trust string   `yaml:"trust"`
	Allow []string `yaml:"allow"`
	Dir   string   `yaml:"dir"`
}

func checkSkills(k *checker, s Skills) {
	k.chosen("skills.trust", []string{skill.OwnedOnly, skill.Whitelist, skill.Any})
	_, err := skill.ParseTrust(s.Trust, s.Allow)
	k.failed("skills", err)
}

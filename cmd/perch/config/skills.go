package config

import "perch/agent/skill"

// Skills holds the settings of the skills that characters may use.
type Skills struct {
	Trust string   `yaml:"trust" label:"Skills that are loaded"`
	Allow []string `yaml:"allow" label:"Allowed skills and owners"` // digests of allowed skills
	Dir   string   `yaml:"dir" label:"Folder of skills"`            // path of the folder of skills
}

// checkSkills checks the trust and the allowed skills.
func checkSkills(k *checker, s Skills) {
	k.setChoices("skills.trust", []string{skill.OwnedOnly, skill.Whitelist, skill.Any})
	_, err := skill.ParseTrust(s.Trust, s.Allow)
	k.failed("skills", err)
}

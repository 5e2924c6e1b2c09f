package engines

import (
	"errors"

	"perch/agent/reflex"
	"perch/agent/skill"
)

// prepareBook makes a book use the set's catalogue of languages, and adds the sentences about the owner's music and
// those of all skills. skills may be nil. The error lists the sentences that were left out, and the reasons.
func (e *Set) prepareBook(book *reflex.Book, skills *skill.Library) error {
	book.Share(e.words)
	book.AddMusic(e.music)
	if skills == nil {
		return nil
	}
	var errs []error
	for _, s := range skills.All() {
		errs = append(errs, AddSkill(book, s))
	}
	return errors.Join(errs...)
}

// AddSkill adds the sentences of a skill to a book.
func AddSkill(book *reflex.Book, s skill.Skill) error {
	return book.AddSkill(s.Name, s.SentencesIn(book.Language()))
}

"""Words and pictures: figures, cards, pages. This floor decides nothing; it shows what others computed."""

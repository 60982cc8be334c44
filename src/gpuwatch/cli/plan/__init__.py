"""What a study is going to do, printed before it begins."""
